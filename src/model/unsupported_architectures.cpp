// Classes that are known and not decoder-only transformers: refused by name until their layers
// can be expressed.

#include "model/architectures.hpp"

namespace trigon {
namespace {

struct Unsupported {
  std::string_view name, why;
};
constexpr std::string_view kHybrid = "a hybrid with state-space or linear-attention layers";
constexpr std::string_view kState = "a state-space or recurrent model";
constexpr std::string_view kCompressed = "a model with compressed attention caches";
constexpr std::string_view kVision = "a vision model";

constexpr Unsupported kUnsupported[] = {
    {"Qwen3NextForCausalLM", kHybrid},
    {"Qwen3_5ForConditionalGeneration", kHybrid},
    {"Qwen3_5MoeForConditionalGeneration", kHybrid},
    {"NemotronHForCausalLM", kHybrid},
    {"JambaForCausalLM", kHybrid},
    {"BambaForCausalLM", kHybrid},
    {"Zamba2ForCausalLM", kHybrid},
    {"ZambaForCausalLM", kHybrid},
    {"FalconH1ForCausalLM", kHybrid},
    {"GraniteMoeHybridForCausalLM", kHybrid},
    {"Plamo2ForCausalLM", kHybrid},
    {"Lfm2ForCausalLM", kHybrid},
    {"RecurrentGemmaForCausalLM", kHybrid},
    {"KimiLinearForCausalLM", kHybrid},
    {"KimiK3ForConditionalGeneration", kHybrid},
    {"MiniMaxText01ForCausalLM", kHybrid},
    {"MiniMaxM1ForCausalLM", kHybrid},
    {"MambaForCausalLM", kState},
    {"Mamba2ForCausalLM", kState},
    {"FalconMambaForCausalLM", kState},
    {"RwkvForCausalLM", kState},
    {"Rwkv5ForCausalLM", kState},
    {"Rwkv6ForCausalLM", kState},
    {"DeepseekV4ForCausalLM", kCompressed},
    {"MiniMaxM3SparseForConditionalGeneration", kCompressed},
    {"MiniMaxM3ForCausalLM", kCompressed},
    {"ViTForImageClassification", kVision},
    {"ResNetForImageClassification", kVision},
    {"SwinForImageClassification", kVision},
    {"CLIPModel", kVision},
};

}  // namespace

std::string_view why_unsupported(std::string_view name) {
  for (const Unsupported& u : kUnsupported)
    if (u.name == name) return u.why;
  return {};
}

}  // namespace trigon
