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
constexpr std::string_view kVision = "a vision model";

constexpr Unsupported kUnsupported[] = {
    {"Zamba2ForCausalLM", kHybrid},
    {"ZambaForCausalLM", kHybrid},
    {"KimiK3ForConditionalGeneration", kHybrid},
    {"RwkvForCausalLM", kState},
    {"Rwkv5ForCausalLM", kState},
    {"Rwkv6ForCausalLM", kState},
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
