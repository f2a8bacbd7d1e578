// A quantisation dialect, as hf_quant_config.json beside a config and inside one.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/decoder_spec.hpp"
#include "model/hf_config.hpp"
#include "model/quantization_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trigon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto json = parse_json(text, "hf_quant_config.json");
  if (!json) return 0;
  static const DecoderSpec base = *read_hf_config(
      R"({"architectures":["DeepseekV3ForCausalLM"],"num_hidden_layers":4,"hidden_size":64,
      "num_attention_heads":4,"vocab_size":128,"intermediate_size":96,"kv_lora_rank":16,
      "q_lora_rank":24,"qk_nope_head_dim":8,"qk_rope_head_dim":4,"v_head_dim":8,
      "n_routed_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":32,
      "n_shared_experts":1,"first_k_dense_replace":1,"tie_word_embeddings":false,
      "torch_dtype":"bfloat16"})",
      "config.json");
  DecoderSpec beside = base, inside = base;
  if (apply_quantization(nullptr, &*json, Format::bf16, "config.json", beside))
    (void)build_decoder(beside, "config.json");
  if (json->object() && apply_quantization(&*json, nullptr, Format::bf16, "config.json", inside))
    (void)build_decoder(inside, "config.json");
  return 0;
}
