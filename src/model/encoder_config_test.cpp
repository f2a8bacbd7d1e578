// Published parameter counts of encoders and encoder-decoders, from configs as published.

#include <gtest/gtest.h>

#include "model/hf_config.hpp"
#include "model/kv_cache.hpp"

namespace trigon {
namespace {

Model read(const std::string& config) {
  auto spec = read_hf_config(config, "config.json");
  if (!spec) {
    ADD_FAILURE() << "not read";
    return {};
  }
  auto model = build_decoder(*spec, "config.json");
  if (!model) {
    ADD_FAILURE() << "not built";
    return {};
  }
  return *model;
}

std::int64_t parameters(const std::string& config) { return count_parameters(read(config)).total; }

std::string bert(const std::string& name, int layers, int hidden) {
  return R"({"architectures":[")" + name + R"("],"num_hidden_layers":)" + std::to_string(layers) +
         R"(,"hidden_size":)" + std::to_string(hidden) + R"(,"num_attention_heads":)" +
         std::to_string(hidden / 64) + R"(,"intermediate_size":)" + std::to_string(4 * hidden) +
         R"(,"vocab_size":30522,"max_position_embeddings":512,"type_vocab_size":2})";
}

// arXiv:1810.04805 gives 110M and 340M; the exact counts are those of the published weights.
TEST(EncoderConfig, BertMatchesItsWeights) {
  EXPECT_EQ(parameters(bert("BertModel", 12, 768)), 109482240);
  EXPECT_EQ(parameters(bert("BertForMaskedLM", 12, 768)), 109514298);
  EXPECT_EQ(parameters(bert("BertModel", 24, 1024)), 335141888);
  // Pooler, masked-LM transform and bias, next sentence.
  EXPECT_EQ(parameters(bert("BertForPreTraining", 24, 1024)),
            335141888 + 1024 * 1024 + 1024 + 2048 + 30522 + 2050);
}

TEST(EncoderConfig, BertsFirstConfigNamesNoClass) {
  const Model m = read(
      R"({"attention_probs_dropout_prob":0.1,"hidden_act":"gelu","hidden_size":1024,
          "intermediate_size":4096,"max_position_embeddings":512,"num_attention_heads":16,
          "num_hidden_layers":24,"type_vocab_size":2,"vocab_size":30522})");
  EXPECT_EQ(m.architecture, "BertForPreTraining");
  const Stack* s = language_stack(m);
  ASSERT_TRUE(s);
  EXPECT_FALSE(s->generates);
  EXPECT_EQ(kv_bytes_per_token(*s, Format::bf16), 0);
  EXPECT_EQ(m.components.front().role, ComponentRole::encoder);
}

TEST(EncoderConfig, RobertaAndItsKin) {
  const std::string shape =
      R"("num_hidden_layers":12,"hidden_size":768,"num_attention_heads":12,
         "intermediate_size":3072,"max_position_embeddings":514,"type_vocab_size":1)";
  EXPECT_EQ(parameters(R"({"model_type":"roberta","vocab_size":50265,)" + shape + "}"), 124697433);
  EXPECT_EQ(parameters(R"({"architectures":["RobertaModel"],"vocab_size":50265,)" + shape + "}"),
            124645632);
  EXPECT_EQ(parameters(R"({"architectures":["RobertaForMaskedLM"],"vocab_size":50265,
      "num_hidden_layers":24,"hidden_size":1024,"num_attention_heads":16,"intermediate_size":4096,
      "max_position_embeddings":514,"type_vocab_size":1})"),
            355412057);
  // arXiv:2004.05150; the projections of global attention are counted.
  EXPECT_EQ(parameters(R"({"architectures":["LongformerModel"],"vocab_size":50265,
      "num_hidden_layers":12,"hidden_size":768,"num_attention_heads":12,"intermediate_size":3072,
      "max_position_embeddings":4098,"type_vocab_size":1,
      "attention_window":[512,512,512,512,512,512,512,512,512,512,512,512]})"),
            148659456);
  EXPECT_EQ(parameters(R"({"architectures":["MPNetModel"],"vocab_size":30527,
      "relative_attention_num_buckets":32,"num_hidden_layers":12,"hidden_size":768,
      "num_attention_heads":12,"intermediate_size":3072,"max_position_embeddings":514})"),
            109486464);
}

TEST(EncoderConfig, SmallerEncoders) {
  EXPECT_EQ(parameters(R"({"architectures":["DistilBertModel"],"dim":768,"hidden_dim":3072,
      "n_heads":12,"n_layers":6,"vocab_size":30522,"max_position_embeddings":512})"),
            66362880);
  EXPECT_EQ(parameters(R"({"architectures":["DistilBertForMaskedLM"],"dim":768,"hidden_dim":3072,
      "n_heads":12,"n_layers":6,"vocab_size":30522,"max_position_embeddings":512})"),
            66985530);
  // arXiv:1909.11942 gives 12M; one layer of weights does the work of twelve.
  const Model albert = read(R"({"architectures":["AlbertModel"],"embedding_size":128,
      "hidden_size":768,"intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,
      "max_position_embeddings":512,"type_vocab_size":2,"vocab_size":30000})");
  EXPECT_EQ(count_parameters(albert).total, 11683584);
  EXPECT_EQ(language_stack(albert)->layers(), 12);
  // arXiv:2003.10555 gives 14M. 30,522 + 512 + 2 rows of 128 and their norm, 128 x 256 + 256,
  // 12 x 789,760.
  EXPECT_EQ(parameters(R"({"architectures":["ElectraModel"],"embedding_size":128,
      "hidden_size":256,"intermediate_size":1024,"num_attention_heads":4,"num_hidden_layers":12,
      "max_position_embeddings":512,"type_vocab_size":2,"vocab_size":30522})"),
            13483008);
}

TEST(EncoderConfig, LaterEncoders) {
  EXPECT_EQ(parameters(R"({"model_type":"deberta-v2","hidden_size":768,"intermediate_size":3072,
      "num_attention_heads":12,"num_hidden_layers":12,"max_position_embeddings":512,
      "type_vocab_size":0,"vocab_size":128100,"relative_attention":true,"position_buckets":256,
      "norm_rel_ebd":"layer_norm","share_att_key":true,"position_biased_input":false})"),
            183831552);
  EXPECT_EQ(parameters(R"({"architectures":["ModernBertForMaskedLM"],"hidden_size":768,
      "intermediate_size":1152,"num_attention_heads":12,"num_hidden_layers":22,
      "max_position_embeddings":8192,"vocab_size":50368,"norm_bias":false,"attention_bias":false,
      "mlp_bias":false,"decoder_bias":true,"global_attn_every_n_layers":3,
      "local_attention":128})"),
            149655232);
  EXPECT_EQ(parameters(R"({"architectures":["NomicBertModel"],"n_embd":768,"n_head":12,
      "n_layer":12,"n_inner":3072,"vocab_size":30528,"type_vocab_size":2,"n_positions":8192,
      "activation_function":"swiglu","qkv_proj_bias":false,"mlp_fc1_bias":false})"),
            136731648);
  EXPECT_EQ(parameters(R"({"architectures":["Wav2Vec2Model"],"hidden_size":768,
      "intermediate_size":3072,"num_attention_heads":12,"num_hidden_layers":12,
      "feat_extract_norm":"group","conv_bias":false,"do_stable_layer_norm":false})"),
            94371712);
  EXPECT_EQ(parameters(R"({"architectures":["Wav2Vec2Model"],"hidden_size":1024,
      "intermediate_size":4096,"num_attention_heads":16,"num_hidden_layers":24,
      "feat_extract_norm":"layer","conv_bias":true,"do_stable_layer_norm":true})"),
            315438720);
}

std::string t5(int d, int kv, int heads, int ff, int layers, bool gated) {
  return R"({"architectures":["T5ForConditionalGeneration"],"d_model":)" + std::to_string(d) +
         R"(,"d_kv":)" + std::to_string(kv) + R"(,"num_heads":)" + std::to_string(heads) +
         R"(,"d_ff":)" + std::to_string(ff) + R"(,"num_layers":)" + std::to_string(layers) +
         R"(,"vocab_size":32128,"relative_attention_num_buckets":32,"feed_forward_proj":")" +
         (gated ? R"(gated-gelu","tie_word_embeddings":false})" : R"(relu"})");
}

// arXiv:1910.10683 gives 60M, 220M, 770M, 3B and 11B; the exact counts are those of the weights.
TEST(EncoderConfig, T5MatchesItsWeights) {
  EXPECT_EQ(parameters(t5(512, 64, 8, 2048, 6, false)), 60506624);
  EXPECT_EQ(parameters(t5(768, 64, 12, 3072, 12, false)), 222903552);
  EXPECT_EQ(parameters(t5(1024, 64, 16, 4096, 24, false)), 737668096);
  EXPECT_EQ(parameters(t5(512, 64, 6, 1024, 8, true)), 76961152);
  EXPECT_EQ(parameters(t5(768, 64, 12, 2048, 12, true)), 247577856);
  EXPECT_EQ(parameters(t5(2048, 64, 32, 5120, 24, true)), 2849757184);
  EXPECT_EQ(parameters(t5(4096, 64, 64, 10240, 24, true)), 11135332352);
}

std::string bart(const std::string& name, int d, int layers, int ffn, int vocabulary,
                 int positions) {
  std::string n = std::to_string(layers), h = std::to_string(d / 64), f = std::to_string(ffn);
  return R"({"architectures":[")" + name + R"("],"d_model":)" + std::to_string(d) +
         R"(,"encoder_layers":)" + n + R"(,"decoder_layers":)" + n +
         R"(,"encoder_attention_heads":)" + h + R"(,"decoder_attention_heads":)" + h +
         R"(,"encoder_ffn_dim":)" + f + R"(,"decoder_ffn_dim":)" + f + R"(,"vocab_size":)" +
         std::to_string(vocabulary) + R"(,"max_position_embeddings":)" + std::to_string(positions) +
         "}";
}

TEST(EncoderConfig, BartAndItsKin) {
  EXPECT_EQ(parameters(bart("BartForConditionalGeneration", 1024, 12, 4096, 50265, 1024)),
            406291456);
  EXPECT_EQ(parameters(bart("BartForConditionalGeneration", 768, 6, 3072, 50265, 1024)), 139420416);
  EXPECT_EQ(parameters(bart("MBartForConditionalGeneration", 1024, 12, 4096, 250027, 1024)),
            610851840);
  // Without the tables of sinusoids that some programs count: 2 x 1024 x 1024 of 570,797,056.
  EXPECT_EQ(parameters(bart("PegasusForConditionalGeneration", 1024, 16, 4096, 96103, 1024)),
            568699904);
  // NLLB-200 distilled 600M.
  EXPECT_EQ(parameters(bart("M2M100ForConditionalGeneration", 1024, 12, 4096, 256206, 1024)),
            615073792);
}

std::string whisper(int d, int encoder, int decoder, int vocabulary, int mel) {
  std::string h = std::to_string(d / 64), f = std::to_string(4 * d);
  return R"({"model_type":"whisper","d_model":)" + std::to_string(d) + R"(,"encoder_layers":)" +
         std::to_string(encoder) + R"(,"decoder_layers":)" + std::to_string(decoder) +
         R"(,"encoder_attention_heads":)" + h + R"(,"decoder_attention_heads":)" + h +
         R"(,"encoder_ffn_dim":)" + f + R"(,"decoder_ffn_dim":)" + f + R"(,"vocab_size":)" +
         std::to_string(vocabulary) + R"(,"num_mel_bins":)" + std::to_string(mel) +
         R"(,"max_source_positions":1500,"max_target_positions":448})";
}

// arXiv:2212.04356 gives 39M, 74M, 244M, 769M and 1550M; exact counts of the published weights,
// the encoder's stored sinusoids included.
TEST(EncoderConfig, WhisperMatchesItsWeights) {
  EXPECT_EQ(parameters(whisper(384, 4, 4, 51865, 80)), 37760640);
  EXPECT_EQ(parameters(whisper(512, 6, 6, 51865, 80)), 72593920);
  EXPECT_EQ(parameters(whisper(768, 12, 12, 51865, 80)), 241734912);
  EXPECT_EQ(parameters(whisper(1024, 24, 24, 51865, 80)), 763857920);
  EXPECT_EQ(parameters(whisper(1280, 32, 32, 51865, 80)), 1543304960);
  EXPECT_EQ(parameters(whisper(1280, 32, 32, 51866, 128)), 1543490560);
  EXPECT_EQ(parameters(whisper(1280, 32, 4, 51866, 128)), 808878080);
}

TEST(EncoderConfig, DecodersReadTheirEncoder) {
  const Model m = read(whisper(768, 12, 12, 51865, 80));
  const Stack *encoder = source_stack(m), *decoder = language_stack(m);
  ASSERT_TRUE(encoder && decoder);
  EXPECT_FALSE(encoder->generates);
  EXPECT_TRUE(decoder->generates);
  EXPECT_EQ(positions_of(*encoder, 7), 1500);
  EXPECT_DOUBLE_EQ(encoder->seconds_of_input, 30);
  // 12 layers x (keys + values) x 768 x 2 bytes, of a token written and of one read.
  EXPECT_EQ(kv_bytes_per_token(*decoder, Format::bf16), 12 * 2 * 768 * 2);
  EXPECT_EQ(source_kv_bytes_per_token(*decoder, Format::bf16), 12 * 2 * 768 * 2);
}

TEST(EncoderConfig, ImpossibleDimensionsAreRefused) {
  for (const char* config :
       {R"({"model_type":"bert","hidden_size":9223372036854775807,"num_hidden_layers":2,
            "num_attention_heads":2,"intermediate_size":8,"vocab_size":10})",
        R"({"model_type":"longformer","hidden_size":8,"num_hidden_layers":9223372036854775807,
            "num_attention_heads":2,"intermediate_size":8,"vocab_size":10})",
        R"({"model_type":"wav2vec2","hidden_size":8,"num_hidden_layers":2,"conv_dim":[0],
            "conv_kernel":[9223372036854775807],"conv_stride":[-1],"num_attention_heads":2,
            "intermediate_size":8})"}) {
    auto spec = read_hf_config(std::string_view(config), "config.json");
    EXPECT_FALSE(spec && build_decoder(*spec, "config.json")) << config;
  }
}

}  // namespace
}  // namespace trigon
