// Oddities of real configs, each in a config of a few lines.

#include <gtest/gtest.h>

#include "model/hf_config.hpp"
#include "model/model.hpp"
#include "model/module_patterns.hpp"

namespace trigon {
namespace {

std::string config(const std::string& more) {
  return R"({"num_hidden_layers":4,"hidden_size":64,"num_attention_heads":4,"vocab_size":96,
    "intermediate_size":128,"max_position_embeddings":512,"torch_dtype":"bfloat16",)" +
         more + "}";
}

DecoderSpec read(const std::string& more) {
  auto spec = read_hf_config(config(more), "c.json");
  EXPECT_TRUE(spec) << more << " " << (spec ? "" : spec.error().where);
  return spec ? *spec : DecoderSpec{};
}

Error refused(const std::string& text) {
  auto spec = read_hf_config(text, "c.json");
  EXPECT_FALSE(spec) << text;
  return spec ? Error{} : spec.error();
}

TEST(Config, AnUnknownArchitectureIsRefusedByNameWithTheFieldsItNeeds) {
  const Error e = refused(config(R"("architectures":["NeverHeardOfForCausalLM"])"));
  EXPECT_EQ(e.code, ErrorCode::unsupported);
  EXPECT_EQ(e.where, "c.json#/architectures");
  EXPECT_EQ(std::get<std::string>(e.what.args[0]), "NeverHeardOfForCausalLM");
  ASSERT_TRUE(e.hint);
  EXPECT_NE(std::get<std::string>(e.hint->args[0]).find("num_hidden_layers"), std::string::npos);
}

TEST(Config, YarnStretchesTheContext) {
  auto context = [](const std::string& rope) {
    return read(R"("architectures":["LlamaForCausalLM"],"rope_scaling":)" + rope).max_context;
  };
  // 512 x 4; a config whose length counts the scaling already stays as it is.
  EXPECT_EQ(context(R"({"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":512})"),
            2048);
  EXPECT_EQ(context(R"({"type":"yarn","factor":4.0,"original_max_position_embeddings":128})"), 512);
  EXPECT_EQ(context(R"({"rope_type":"llama3","factor":8.0})"), 512);
  EXPECT_EQ(context(R"({"rope_type":"yarn","factor":1e300})"), 512);
}

TEST(Config, KnownButOtherArchitecturesSayWhatTheyAre) {
  for (const char* name : {"Zamba2ForCausalLM", "RwkvForCausalLM"}) {
    const Error e = refused(config(std::string(R"("architectures":[")") + name + R"("])"));
    EXPECT_EQ(e.code, ErrorCode::unsupported) << name;
    EXPECT_EQ(std::get<std::string>(e.what.args[0]), name);
  }
}

TEST(Config, MissingFieldsAreNamedTogetherAndWrongOnesByPointer) {
  const Error all = refused(R"({"architectures":["LlamaForCausalLM"]})");
  EXPECT_EQ(std::get<std::string>(all.what.args[1]), "num_hidden_layers, hidden_size, vocab_size");
  const Error one =
      refused(config(R"("architectures":["LlamaForCausalLM"],"num_key_value_heads":"two")"));
  EXPECT_EQ(one.where, "c.json#/num_key_value_heads");
  const Error nested = refused(
      R"({"architectures":["Qwen3VLForConditionalGeneration"],"text_config":{"num_hidden_layers":true}})");
  EXPECT_EQ(nested.where, "c.json#/text_config/num_hidden_layers");
  const Error syntax = refused(R"({"architectures":)");
  EXPECT_EQ(syntax.where.rfind("c.json:", 0), 0u);
}

TEST(Config, HostileNumbersAreRefused) {
  for (const char* more :
       {R"("architectures":["LlamaForCausalLM"],"head_dim":99999999999999)",
        R"("architectures":["LlamaForCausalLM"],"head_dim":-1)",
        R"("architectures":["LlamaForCausalLM"],"num_key_value_heads":3)",
        R"("architectures":["LlamaForCausalLM"],"intermediate_size":0.5)",
        R"("architectures":["MixtralForCausalLM"],"num_local_experts":2,"num_experts_per_tok":3)",
        R"("architectures":["LlamaForCausalLM"],"sliding_window":8,"layer_types":[7])"}) {
    auto spec = read_hf_config(config(more), "c.json");
    if (!spec) continue;
    EXPECT_FALSE(build_decoder(*spec, "c.json")) << more;
  }
  EXPECT_FALSE(
      read_hf_config(R"({"architectures":["LlamaForCausalLM"],"num_hidden_layers":1000000000,
    "hidden_size":64,"vocab_size":9,"num_attention_heads":4,"intermediate_size":8})",
                     "c.json"));
  EXPECT_FALSE(read_hf_config(std::string(1000, '['), "c.json"));
}

TEST(Config, NullAndListedFieldsAndEitherDtypeName) {
  DecoderSpec s = read(
      R"("architectures":["LlamaForCausalLM"],"head_dim":null,"num_key_value_heads":null,
      "eos_token_id":[1,2,3],"sliding_window":null)");
  EXPECT_EQ(s.layers[0].head_dim, 16);
  EXPECT_EQ(s.layers[0].kv_heads, 4);
  auto both = read_hf_config(
      R"({"architectures":["LlamaForCausalLM"],"num_hidden_layers":1,"hidden_size":64,"vocab_size":9,
      "num_attention_heads":4,"intermediate_size":8,"dtype":"float32"})",
      "c.json");
  ASSERT_TRUE(both);
  EXPECT_EQ(both->layers[0].formats.q, Format::f32);
}

TEST(Config, AKnownLanguageModelInAnUnknownClass) {
  auto s = read_hf_config(
      R"({"architectures":["InternVLChatModel"],"vision_config":{"hidden_size":9},"llm_config":{
      "architectures":["Qwen2ForCausalLM"],"num_hidden_layers":1,"hidden_size":64,"vocab_size":9,
      "num_attention_heads":4,"intermediate_size":8,"torch_dtype":"bfloat16"}})",
      "c.json");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->architecture, "Qwen2ForCausalLM");
  EXPECT_TRUE(s->layers[0].q_bias);
  EXPECT_EQ(s->notes.size(), 1u);
}

TEST(Config, PerLayerLists) {
  DecoderSpec s = read(R"("architectures":["DeciLMForCausalLM"],
      "num_key_value_heads_per_layer":[4,2,1,2])");
  EXPECT_EQ(s.layers[0].kv_heads, 4);
  EXPECT_EQ(s.layers[2].kv_heads, 1);
  const Error e = refused(config(R"("architectures":["DeciLMForCausalLM"],
      "num_key_value_heads_per_layer":[4,2])"));
  EXPECT_EQ(e.where, "c.json#/num_key_value_heads_per_layer");
}

TEST(Config, WindowsFollowEachArchitecture) {
  auto windows = [](const DecoderSpec& s) {
    std::string out;
    for (const LayerSpec& l : s.layers) out += l.window ? 'w' : l.chunk ? 'c' : '.';
    return out;
  };
  EXPECT_EQ(windows(read(R"("architectures":["MistralForCausalLM"],"sliding_window":32)")), "wwww");
  EXPECT_EQ(windows(read(R"("architectures":["Gemma2ForCausalLM"],"sliding_window":32)")), "w.w.");
  EXPECT_EQ(windows(read(R"("architectures":["Gemma3ForCausalLM"],"sliding_window":32,
      "sliding_window_pattern":2)")),
            "w.w.");
  EXPECT_EQ(windows(read(R"("architectures":["Cohere2ForCausalLM"],"sliding_window":32)")), "www.");
  EXPECT_EQ(windows(read(R"("architectures":["Qwen2ForCausalLM"],"sliding_window":32)")), "....");
  EXPECT_EQ(windows(read(R"("architectures":["Qwen2ForCausalLM"],"sliding_window":32,
      "use_sliding_window":true,"max_window_layers":3)")),
            "...w");
  EXPECT_EQ(windows(read(R"("architectures":["Qwen3ForCausalLM"],"sliding_window":32,
      "layer_types":["full_attention","sliding_attention","full_attention","chunked_attention"],
      "attention_chunk_size":64)")),
            ".w.c");
  EXPECT_EQ(windows(read(R"("architectures":["Llama4ForCausalLM"],"num_local_experts":2,
      "num_experts_per_tok":1,"attention_chunk_size":64)")),
            "ccc.");
}

TEST(Config, ExpertLayersFollowEachArchitecture) {
  auto layers = [](const DecoderSpec& s) {
    std::string out;
    for (const LayerSpec& l : s.layers) out += l.mlp == MlpKind::experts ? 'e' : 'd';
    return out;
  };
  EXPECT_EQ(layers(read(R"("architectures":["Qwen3MoeForCausalLM"],"num_experts":4,
      "num_experts_per_tok":2,"moe_intermediate_size":16,"decoder_sparse_step":2,
      "mlp_only_layers":[3])")),
            "dedd");
  EXPECT_EQ(layers(read(R"("architectures":["Glm4MoeForCausalLM"],"n_routed_experts":4,
      "num_experts_per_tok":2,"moe_intermediate_size":16,"first_k_dense_replace":1)")),
            "deee");
  EXPECT_EQ(layers(read(R"("architectures":["Llama4ForCausalLM"],"num_local_experts":4,
      "num_experts_per_tok":1,"interleave_moe_layer_step":2,"intermediate_size_mlp":64)")),
            "dede");
}

struct Dialect {
  const char* config;
  Format mlp, attention, head;
};

TEST(Config, EveryDialectOfQuantisation) {
  const std::string llama = R"("architectures":["LlamaForCausalLM"],"quantization_config":)";
  const Format b = Format::bf16;
  for (
      const Dialect& d : std::initializer_list<Dialect>{
          {R"({"quant_method":"gptq","bits":4,"group_size":128,"desc_act":false})",
           Format::int4_g128, Format::int4_g128, b},
          {R"({"quant_method":"gptq","bits":8,"group_size":-1})", Format::int8, Format::int8, b},
          {R"({"quant_method":"awq","w_bit":4,"q_group_size":64,"modules_to_not_convert":["self_attn"]})",
           Format::int4_g64, b, b},
          {R"({"quant_method":"bitsandbytes","load_in_4bit":true})", Format::nf4, Format::nf4, b},
          {R"({"load_in_4bit":true,"bnb_4bit_use_double_quant":true})", Format::nf4_double,
           Format::nf4_double, b},
          {R"({"quant_method":"bitsandbytes","load_in_8bit":true,"llm_int8_skip_modules":null})",
           Format::int8, Format::int8, b},
          {R"({"quant_method":"fp8","weight_block_size":[128,128],"modules_to_not_convert":["lm_head"]})",
           Format::fp8_block, Format::fp8_block, b},
          {R"({"quant_method":"fp8","activation_scheme":"static"})", Format::fp8_tensor,
           Format::fp8_tensor, b},
          {R"({"quant_method":"fbgemm_fp8","modules_to_not_convert":["model.layers.0.self_attn",
             "model.layers.1.self_attn","model.layers.2.self_attn","model.layers.3.self_attn"]})",
           Format::fp8_tensor, b, b},
          {R"({"quant_method":"compressed-tensors","ignore":["lm_head"],"config_groups":{"g":{
             "targets":["Linear"],"weights":{"num_bits":4,"type":"int","group_size":128}}}})",
           Format::int4_g128, Format::int4_g128, b},
          {R"({"quant_method":"compressed-tensors","ignore":["re:.*self_attn.*"],"config_groups":{"g":{
             "targets":["Linear"],"weights":{"num_bits":8,"type":"float","strategy":"channel"}}}})",
           Format::fp8_tensor, b, Format::fp8_tensor},
          {R"({"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","ignore":["lm_head"],
             "config_groups":{"g":{"targets":["re:.*mlp.*"],"weights":{"num_bits":4,"type":"float",
             "group_size":16}}}})",
           Format::nvfp4, b, b},
          {R"({"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["lm_head","*self_attn*"]})",
           Format::nvfp4, b, b},
          {R"({"quant_method":"quark","global_quant_config":{"weight":{"dtype":"fp4"}},
             "exclude":["lm_head"]})",
           Format::mxfp4, Format::mxfp4, b},
          {R"({"quant_method":"hqq","quant_config":{"weight_quant_params":{"nbits":4,"group_size":64}}})",
           Format::int4_g64, Format::int4_g64, b},
          {R"({"quant_method":"mxfp4"})", b, b, b},  // packs experts alone
      }) {
    DecoderSpec s = read(llama + d.config);
    ASSERT_EQ(s.layers.size(), 4u);
    EXPECT_EQ(s.layers[1].formats.up, d.mlp) << d.config;
    EXPECT_EQ(s.layers[1].formats.q, d.attention) << d.config;
    EXPECT_EQ(s.head_format, d.head) << d.config;
    // Embeddings, norms and routers stay in 16 bit in every dialect.
    EXPECT_EQ(s.embedding_format, b);
    EXPECT_EQ(s.layers[1].formats.norm, b);
    EXPECT_EQ(s.layers[1].formats.router, b);
  }
  const Error e = refused(config(llama + R"({"quant_method":"qubits"})"));
  EXPECT_EQ(e.code, ErrorCode::unsupported);
  EXPECT_EQ(std::get<std::string>(e.what.args[0]), "qubits");
}

TEST(Config, ModelOptsOwnFileBesideTheConfig) {
  auto beside = parse_json(
      R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":"FP8",
      "kv_cache_quant_algo":"FP8","exclude_modules":["lm_head","model.layers.2*"]}})",
      "hf_quant_config.json");
  ASSERT_TRUE(beside);
  auto s = read_hf_config(config(R"("architectures":["LlamaForCausalLM"])"), "c.json", &*beside);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->layers[1].formats.up, Format::fp8_tensor);
  EXPECT_EQ(s->layers[2].formats.up, Format::bf16);
  EXPECT_EQ(s->kv_format, Format::f8_e4m3);
  EXPECT_EQ(s->head_format, Format::bf16);
}

TEST(ModulePatterns, NamePartsAndLayersAreWhole) {
  ModulePatterns p;
  for (const char* s : {"gate", "model.layers.1.self_attn", "model.layers.*.mlp.down_proj",
                        "re:model\\.layers\\.\\d+\\.self_attn\\.o_proj", "lm_head"})
    p.add(s);
  EXPECT_TRUE(p.in_layer(0, "mlp.gate"));
  EXPECT_FALSE(p.in_layer(0, "mlp.gate_proj"));
  EXPECT_TRUE(p.in_layer(1, "self_attn.q_proj"));
  EXPECT_FALSE(p.in_layer(11, "self_attn.q_proj"));
  EXPECT_TRUE(p.in_layer(7, "mlp.down_proj"));
  EXPECT_TRUE(p.in_layer(3, "self_attn.o_proj"));
  EXPECT_TRUE(p.outside("lm_head"));
  EXPECT_FALSE(p.outside("embed_tokens"));
}

}  // namespace
}  // namespace trigon
