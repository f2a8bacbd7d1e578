// Hybrids and state-space models: parameters against published totals, states by hand.

#include <gtest/gtest.h>

#include "model/gguf.hpp"
#include "model/gguf_model.hpp"
#include "model/gguf_writer_test.hpp"
#include "model/hf_config.hpp"
#include "model/kv_cache.hpp"
#include "model/model.hpp"

namespace trigon {
namespace {

Model built(const std::string& config) {
  auto spec = read_hf_config(config, "c.json");
  EXPECT_TRUE(spec) << config << " " << (spec ? "" : spec.error().where);
  if (!spec) return {};
  auto m = build_decoder(*spec, "c.json");
  EXPECT_TRUE(m) << config;
  return m ? *m : Model{};
}

const Stack& language(const Model& m) { return *language_stack(m); }

// The counts of the released checkpoints, to the parameter.
TEST(Hybrids, MambaCountsAreThoseOfTheCheckpoints) {
  const Model small = built(R"({"architectures":["MambaForCausalLM"],"hidden_size":768,
    "num_hidden_layers":24,"vocab_size":50280,"state_size":16,"intermediate_size":1536,
    "time_step_rank":48,"conv_kernel":4,"torch_dtype":"float32"})");
  EXPECT_EQ(count_parameters(language(small)).total, 129135360);  // state-spaces/mamba-130m-hf
  const Model falcon = built(R"({"architectures":["FalconMambaForCausalLM"],"hidden_size":4096,
    "num_hidden_layers":64,"vocab_size":65024,"state_size":16,"intermediate_size":8192,
    "time_step_rank":256,"tie_word_embeddings":false,"torch_dtype":"bfloat16"})");
  EXPECT_EQ(count_parameters(language(falcon)).total, 7272665088);  // tiiuae/falcon-mamba-7b
  const Model two = built(R"({"architectures":["Mamba2ForCausalLM"],"hidden_size":768,
    "num_hidden_layers":24,"vocab_size":50288,"num_heads":24,"head_dim":64,"n_groups":1,
    "state_size":128,"chunk_size":256,"tie_word_embeddings":true,"torch_dtype":"bfloat16"})");
  EXPECT_EQ(count_parameters(language(two)).total, 128989632);  // state-spaces/mamba2-130m
}

TEST(Hybrids, Lfm2IsExactAndRecurrentGemmaAlso) {
  const Model lfm = built(R"({"architectures":["Lfm2ForCausalLM"],"hidden_size":2048,
    "num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":65536,
    "block_ff_dim":12288,"intermediate_size":12288,"block_ffn_dim_multiplier":1.0,
    "block_multiple_of":256,"block_auto_adjust_ff_dim":true,"conv_L_cache":3,"conv_bias":false,
    "full_attn_idxs":[2,5,8,10,12,14],"torch_dtype":"bfloat16"})");
  EXPECT_EQ(count_parameters(language(lfm)).total, 1170340608);  // LiquidAI/LFM2-1.2B
  const Model gemma = built(R"({"architectures":["RecurrentGemmaForCausalLM"],"hidden_size":2560,
    "num_hidden_layers":26,"num_attention_heads":10,"num_key_value_heads":1,"vocab_size":256000,
    "intermediate_size":15360,"lru_width":2560,"attention_window_size":2048,"conv1d_width":4,
    "block_types":["recurrent","recurrent","attention"],"torch_dtype":"bfloat16"})");
  EXPECT_EQ(count_parameters(language(gemma)).total, 2682862080);  // google/recurrentgemma-2b
  // Eight layers of one head and 256 in a window of 2,048; eighteen with 2,560 numbers in 32 bit
  // and three inputs of the convolution in 16.
  EXPECT_EQ(kv_bytes(language(gemma), Format::bf16, 100000),
            8 * 2048 * 2 * 256 * 2.0 + 18 * (2560 * 4.0 + 3 * 2560 * 2.0));
}

struct Published {
  const char* name;
  double parameters, within;
  const char* config;
};

// Totals of the checkpoints' indexes or model cards.
TEST(Hybrids, TotalsArePublishedOnes) {
  for (const Published& p : std::initializer_list<Published>{
           {"ai21labs/Jamba-v0.1", 51.57e9, 0.01, R"({"architectures":["JambaForCausalLM"],
             "hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
             "num_key_value_heads":8,"intermediate_size":14336,"vocab_size":65536,
             "num_experts":16,"num_experts_per_tok":2,"attn_layer_period":8,
             "attn_layer_offset":4,"expert_layer_period":2,"expert_layer_offset":1,
             "mamba_d_state":16,"mamba_d_conv":4,"mamba_expand":2,"mamba_dt_rank":256,
             "tie_word_embeddings":false,"torch_dtype":"bfloat16"})"},
           {"ibm-fms/Bamba-9B", 9.78e9, 0.01, R"({"architectures":["BambaForCausalLM"],
             "hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
             "num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,
             "mamba_n_heads":128,"mamba_d_head":"auto","mamba_n_groups":1,"mamba_d_state":256,
             "mamba_d_conv":4,"mamba_expand":2,"attn_layer_indices":[9,18,27],
             "torch_dtype":"bfloat16"})"},
           {"ibm-granite/granite-4.0-h-small", 32.2e9, 0.01,
            R"({"architectures":["GraniteMoeHybridForCausalLM"],"hidden_size":4096,
             "num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,
             "vocab_size":100352,"intermediate_size":768,"shared_intermediate_size":1536,
             "num_local_experts":72,"num_experts_per_tok":10,"mamba_n_heads":128,
             "mamba_d_head":64,"mamba_n_groups":1,"mamba_d_state":128,"mamba_d_conv":4,
             "layer_types":["mamba","mamba","mamba","mamba","mamba","attention","mamba","mamba",
             "mamba","mamba","mamba","mamba","mamba","mamba","mamba","attention","mamba","mamba",
             "mamba","mamba","mamba","mamba","mamba","mamba","mamba","attention","mamba","mamba",
             "mamba","mamba","mamba","mamba","mamba","mamba","mamba","attention","mamba","mamba",
             "mamba","mamba"],"torch_dtype":"bfloat16"})"},
           {"moonshotai/Kimi-Linear-48B-A3B", 49.1e9, 0.01,
            R"({"architectures":["KimiLinearForCausalLM"],"hidden_size":2304,
             "num_hidden_layers":27,"num_attention_heads":32,"num_key_value_heads":32,
             "intermediate_size":9216,"vocab_size":163840,"num_experts":256,
             "num_experts_per_token":8,"num_shared_experts":1,"moe_intermediate_size":1024,
             "first_k_dense_replace":1,"kv_lora_rank":512,"qk_nope_head_dim":128,
             "qk_rope_head_dim":64,"v_head_dim":128,"linear_attn_config":{
             "full_attn_layers":[4,8,12,16,20,24,27],"head_dim":128,"num_heads":32,
             "kda_layers":[1,2,3,5,6,7,9,10,11,13,14,15,17,18,19,21,22,23,25,26],
             "short_conv_kernel_size":4},"torch_dtype":"bfloat16"})"},
           {"Qwen/Qwen3-Next-80B-A3B", 79.7e9, 0.01, R"({"architectures":["Qwen3NextForCausalLM"],
             "hidden_size":2048,"num_hidden_layers":48,"num_attention_heads":16,"head_dim":256,
             "num_key_value_heads":2,"intermediate_size":5120,"vocab_size":151936,
             "num_experts":512,"num_experts_per_tok":10,"moe_intermediate_size":512,
             "shared_expert_intermediate_size":512,"full_attention_interval":4,
             "linear_num_key_heads":16,"linear_key_head_dim":128,"linear_num_value_heads":32,
             "linear_value_head_dim":128,"linear_conv_kernel_dim":4,
             "tie_word_embeddings":false,"torch_dtype":"bfloat16"})"},
       }) {
    const Model m = built(p.config);
    const double total = static_cast<double>(count_parameters(language(m)).total);
    EXPECT_NEAR(total / p.parameters, 1, p.within) << p.name << " " << total;
  }
}

TEST(Hybrids, AGatedLayerHasItsGateAndStatesDoNotGrow) {
  const Model m = built(R"({"architectures":["Qwen3NextForCausalLM"],"hidden_size":64,
    "num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":1,"head_dim":32,
    "intermediate_size":128,"vocab_size":96,"linear_num_key_heads":2,"linear_key_head_dim":16,
    "linear_num_value_heads":4,"linear_value_head_dim":8,"torch_dtype":"bfloat16"})");
  const Stack& s = language(m);
  ASSERT_EQ(s.runs.size(), 2u);
  EXPECT_EQ(s.runs[0].count, 3);
  const auto& a = std::get<Attention>(s.runs[1].layer.parts[1]);
  ASSERT_TRUE(a.gate);
  EXPECT_EQ(a.gate->out, 4 * 32);
  // A state of 4 x 8 x 16 in 32 bit and three inputs of 2 x 2 x 16 + 4 x 8 channels in 16 bit.
  const double state = 3 * (4 * 8 * 16 * 4.0 + 3 * 96 * 2.0);
  EXPECT_EQ(fixed_bytes_per_sequence(s, Format::bf16), state);
  EXPECT_EQ(kv_bytes(s, Format::bf16, 10), state + 10 * 2 * 32 * 2.0);
  EXPECT_EQ(kv_bytes(s, Format::bf16, 1000), state + 1000 * 2 * 32 * 2.0);
}

// Four layers of DeepSeek-V4-Flash's dimensions: 284B parameters in the whole of it.
TEST(Hybrids, CompressedEntriesStandForSeveralTokens) {
  const Model m = built(R"({"architectures":["DeepseekV4ForCausalLM"],"hidden_size":4096,
    "num_hidden_layers":4,"num_attention_heads":64,"num_key_value_heads":1,"head_dim":512,
    "vocab_size":129280,"moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,
    "num_experts_per_tok":6,"q_lora_rank":1024,"o_lora_rank":1024,"o_groups":8,
    "qk_rope_head_dim":64,"sliding_window":128,"index_n_heads":64,"index_head_dim":128,
    "index_topk":512,"hc_mult":4,"compress_ratios":[0,0,4,128],"tie_word_embeddings":false,
    "torch_dtype":"bfloat16"})");
  const Stack& s = language(m);
  const CacheLayout layout = cache_layout(s);
  ASSERT_EQ(layout.runs.size(), 3u);
  EXPECT_EQ(layout.runs[0].kind, CacheKind::windowed);
  EXPECT_EQ(layout.runs[1].ratio, 4);
  EXPECT_EQ(layout.runs[2].ratio, 128);
  // 128 tokens of a window of 512 elements in four layers; then an entry of 512 elements and an
  // FP8 key of 128 with its scale for every fourth token, and one of 512 for every 128th.
  const double window = 4 * 128 * 512 * 2.0;
  EXPECT_EQ(kv_bytes(s, Format::bf16, 4096), window + 1024 * (1024 + 132.0) + 32 * 1024.0);
}

TEST(Hybrids, GgufNamesAreRead) {
  GgufWriter w;
  w.text("general.architecture", "qwen35");
  w.u32("qwen35.block_count", 2);
  w.u32("qwen35.embedding_length", 64);
  w.u32("qwen35.attention.head_count", 4);
  w.u32("qwen35.attention.head_count_kv", 1);
  w.u32("qwen35.attention.key_length", 32);
  w.u32("qwen35.attention.value_length", 32);
  w.u32("qwen35.ssm.conv_kernel", 4);
  w.u32("qwen35.ssm.inner_size", 32);
  w.u32("qwen35.ssm.state_size", 16);
  w.u32("qwen35.ssm.time_step_rank", 4);
  w.u32("qwen35.ssm.group_count", 2);
  w.tensor("token_embd.weight", {64, 96}, 1);
  w.tensor("output_norm.weight", {64}, 0);
  for (const char* b : {"blk.0.", "blk.1."}) {
    const std::string at = b;
    w.tensor(at + "attn_norm.weight", {64}, 0);
    w.tensor(at + "post_attention_norm.weight", {64}, 0);
    w.tensor(at + "ffn_gate.weight", {64, 128}, 1);
    w.tensor(at + "ffn_up.weight", {64, 128}, 1);
    w.tensor(at + "ffn_down.weight", {128, 64}, 1);
  }
  w.tensor("blk.0.attn_qkv.weight", {64, 96}, 1);
  w.tensor("blk.0.attn_gate.weight", {64, 32}, 1);
  w.tensor("blk.0.ssm_beta.weight", {64, 4}, 1);
  w.tensor("blk.0.ssm_alpha.weight", {64, 4}, 1);
  w.tensor("blk.0.ssm_conv1d.weight", {4, 96}, 0);
  w.tensor("blk.0.ssm_dt.bias", {4}, 0);
  w.tensor("blk.0.ssm_a", {4}, 0);
  w.tensor("blk.0.ssm_norm.weight", {8}, 0);
  w.tensor("blk.0.ssm_out.weight", {32, 64}, 1);
  w.tensor("blk.1.attn_q.weight", {64, 256}, 1);
  w.tensor("blk.1.attn_k.weight", {64, 32}, 1);
  w.tensor("blk.1.attn_v.weight", {64, 32}, 1);
  w.tensor("blk.1.attn_q_norm.weight", {32}, 0);
  w.tensor("blk.1.attn_k_norm.weight", {32}, 0);
  w.tensor("blk.1.attn_output.weight", {128, 64}, 1);
  auto h = read_gguf(ByteSource::memory(w.bytes(), "tiny.gguf"));
  ASSERT_TRUE(h);
  auto model = read_gguf_model(*h, h->tensors, "tiny.gguf");
  ASSERT_TRUE(model);
  const LayerSpec& linear = model->spec.layers[0];
  EXPECT_EQ(linear.attention, AttentionKind::none);
  ASSERT_TRUE(linear.mixer);
  EXPECT_EQ(linear.mixer->kind, MixerKind::gated_delta);
  EXPECT_EQ(linear.mixer->heads, 4);
  EXPECT_EQ(linear.mixer->head_dim, 8);
  EXPECT_EQ(linear.mixer->state, 16);
  EXPECT_EQ(linear.mixer->state_format, Format::f32);
  const LayerSpec& full = model->spec.layers[1];
  EXPECT_FALSE(full.mixer);
  EXPECT_EQ(full.head_dim, 32);
  EXPECT_EQ(full.gate_width, 128);
  // Every parameter of the file is described.
  std::int64_t stored = 0;
  for (const Tensor& t : h->tensors) {
    std::int64_t n = 1;
    for (std::int64_t d : t.shape) n *= d;
    stored += n;
  }
  auto built_model = build_decoder(model->spec, "tiny.gguf");
  ASSERT_TRUE(built_model);
  EXPECT_EQ(count_parameters(language(*built_model)).total, stored);
}

}  // namespace
}  // namespace trigon
