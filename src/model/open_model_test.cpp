#include "model/open_model.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "model/gguf_writer_test.hpp"
#include "model/inspect.hpp"
#include "model/model_catalog.hpp"
#include "model/shared_facts_test.hpp"

namespace trigon {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    static int n = 0;
    path = fs::temp_directory_path() /
           ("trigon_model_test_" + std::to_string(::getpid()) + "_" + std::to_string(n++));
    fs::create_directories(path);
  }
  ~Folder() {
    std::error_code none;
    fs::remove_all(path, none);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
  }
  std::string at(const std::string& name) const { return (path / name).string(); }
  fs::path path;
};

constexpr const char* kConfig = R"({"architectures":["LlamaForCausalLM"],"num_hidden_layers":2,
  "hidden_size":64,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":128,
  "vocab_size":96,"max_position_embeddings":2048,"head_dim":null,"eos_token_id":[1,2],
  "torch_dtype":"bfloat16"})";
constexpr std::int64_t kLayers = 2 * (2 * 64 + 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128);

std::string safetensors(const std::string& json) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return out + json;
}

TEST(OpenModel, AFolderWithoutAHeadIsTied) {
  Folder f;
  f.write("config.json", kConfig);
  f.write(
      "model.safetensors.index.json",
      R"({"metadata":{"total_size":1000},"weight_map":{"model.embed_tokens.weight":"a.safetensors",
          "model.layers.2.mtp.weight":"a.safetensors"}})");
  auto m = open_model_file(f.path.string());
  ASSERT_TRUE(m) << m.error().where;
  EXPECT_TRUE(language_stack(*m)->tied);
  EXPECT_EQ(count_parameters(*m).total, 96 * 64 + 64 + kLayers);
  EXPECT_EQ(m->stored_bytes->value(), 1000);
  EXPECT_EQ(m->id, f.path.filename().string());
  // The absent file and the tensor beyond the layers are told.
  EXPECT_EQ(m->notes.size(), 2u);
  auto same = open_model_file(f.at("model.safetensors.index.json"));
  ASSERT_TRUE(same);
  EXPECT_EQ(count_parameters(*same).total, count_parameters(*m).total);
}

TEST(OpenModel, AMultiGigabyteFileOpensInMilliseconds) {
  Folder f;
  f.write("config.json", kConfig);
  const std::string header = safetensors(
      R"({"lm_head.weight":{"dtype":"BF16","shape":[100,64],"data_offsets":[0,12800]},
      "model.embed_tokens.weight":{"dtype":"BF16","shape":[100,64],"data_offsets":[12800,25600]},
      "model.layers.0.big":{"dtype":"U8","shape":[8000000000],"data_offsets":[25600,8000025600]}})");
  f.write("model.safetensors", header);
  fs::resize_file(f.path / "model.safetensors", header.size() + 8'000'025'600);
  const auto start = std::chrono::steady_clock::now();
  auto m = open_model_file(f.at("model.safetensors"));
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(m) << m.error().where;
  EXPECT_EQ(m->stored_bytes->value(), 8'000'025'600);
  EXPECT_FALSE(language_stack(*m)->tied);
  EXPECT_EQ(language_stack(*m)->vocabulary, 100);  // rows as stored
  EXPECT_LT(took, std::chrono::milliseconds(200));
}

TEST(OpenModel, ASplitGgufOpensByAnyPart) {
  Folder f;
  GgufWriter one, two;
  one.text("general.architecture", "llama");
  one.text("general.name", "Tiny");
  one.u32("llama.block_count", 1);
  one.u32("llama.embedding_length", 64);
  one.u32("llama.attention.head_count", 4);
  one.u32("split.count", 2);
  one.tensor("token_embd.weight", {64, 96}, 1);
  one.tensor("blk.0.attn_q.weight", {64, 64}, 1);
  one.tensor("blk.0.attn_k.weight", {64, 64}, 1);
  two.u32("split.no", 1);
  two.tensor("blk.0.attn_v.weight", {64, 64}, 1);
  two.tensor("blk.0.attn_output.weight", {64, 64}, 1);
  f.write("t-00001-of-00002.gguf", one.bytes());
  f.write("t-00002-of-00002.gguf", two.bytes());
  for (const char* part : {"t-00001-of-00002.gguf", "t-00002-of-00002.gguf", ""}) {
    auto m = open_model_file(*part ? f.at(part) : f.path.string());
    ASSERT_TRUE(m) << m.error().where;
    EXPECT_EQ(m->id, "Tiny");
    EXPECT_EQ(count_parameters(*m).total, 96 * 64 + 4 * 64 * 64);
    EXPECT_EQ(m->stored_bytes->value(), 2 * (96 * 64 + 4 * 64 * 64));
  }
  fs::remove(f.path / "t-00001-of-00002.gguf");
  auto lost = open_model_file(f.at("t-00002-of-00002.gguf"));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::unreadable);
}

// Bytes of the tensor indexes: 2 for each parameter, head and all.
TEST(OpenModel, SharedIndexesAgreeToTheByte) {
  const fs::path configs = shared_directory() / "data/models/configs";
  std::error_code none;
  if (!fs::exists(configs, none)) GTEST_SKIP() << "the shared facts are not here";
  for (const char* name :
       {"WizardLM-2-8x22B", "qianwen-72B", "deepcogito-cogito-v1-preview-qwen-14B",
        "falcon-180B-chat", "granite-3b-code-instruct-128k"}) {
    Folder f;
    const std::string stem = std::string("data/models/configs/index_") + name;
    f.write("config.json", *shared_file(stem + ".config.json"));
    f.write("model.safetensors.index.json", *shared_file(stem + ".model.safetensors.index.json"));
    auto m = open_model_file(f.path.string());
    ASSERT_TRUE(m) << name << " " << m.error().where;
    EXPECT_EQ(m->stored_bytes->value(), 2 * count_parameters(*m).total) << name;
    EXPECT_EQ(weight_bytes(*language_stack(*m)), *m->stored_bytes) << name;
  }
}

TEST(Inspect, DescriptionsAddUp) {
  auto store = FactStore::embedded();
  ASSERT_TRUE(store);
  auto catalog = ModelCatalog::from(*store);
  ASSERT_TRUE(catalog);
  for (const char* name : {"llama-3.1-8b", "deepseek-v3", "gpt-oss-120b", "mixtral-8x7b",
                           "gemma-4-26b-a4b", "opt-350m", "bloom-7b1", "qwen1.5-moe-a2.7b"}) {
    auto m = catalog->find(name);
    ASSERT_TRUE(m) << name;
    const ModelDescription d = describe(*m);
    ASSERT_EQ(d.components.size(), 1u);
    const ComponentDescription& c = d.components[0];
    std::int64_t parameters = 0, bytes = 0;
    for (const WeightDescription& w : c.outside) {
      parameters += w.parameters;
      bytes += w.bytes.value();
    }
    for (const LayerRunDescription& r : c.runs) {
      std::int64_t one = 0;
      for (const WeightDescription& w : r.weights) one += w.parameters;
      EXPECT_EQ(one, r.parameters) << name;
      parameters += r.count * r.parameters;
      bytes += r.count * r.bytes.value();
    }
    EXPECT_EQ(parameters, d.parameters.total) << name;
    EXPECT_EQ(bytes, c.bytes.value()) << name;
    std::int64_t listed = 0, listed_bytes = 0;
    for (const ExpectedTensor& t : tensors_of(*language_stack(*m))) {
      listed += t.parameters;
      listed_bytes += t.bytes.value();
    }
    EXPECT_EQ(listed, d.parameters.total) << name;
    EXPECT_EQ(listed_bytes, c.bytes.value()) << name;
  }
}

TEST(KvCache, KnownSizes) {
  auto store = FactStore::embedded();
  ASSERT_TRUE(store);
  auto catalog = ModelCatalog::from(*store);
  ASSERT_TRUE(catalog);
  auto per_token = [&](const char* name, Format f) {
    auto m = catalog->find(name);
    return m ? kv_bytes_per_token(*language_stack(*m), f) : -1;
  };
  EXPECT_EQ(per_token("llama-3.1-8b", Format::bf16), 131072);
  EXPECT_EQ(per_token("llama-3.1-8b", Format::f8_e4m3), 65536);
  // 8.5 bits an element.
  EXPECT_EQ(per_token("llama-3.1-8b", Format::q8_0), 65536 * 8.5 / 8);
  EXPECT_EQ(per_token("deepseek-v3", Format::bf16), 61 * 576 * 2);
  auto oss = catalog->find("gpt-oss-120b");
  ASSERT_TRUE(oss);
  // Half the 36 layers see 128 tokens, the rest everything.
  const double layer = 2 * 8 * 64 * 2;
  EXPECT_EQ(kv_bytes(*language_stack(*oss), Format::bf16, 1000), layer * (18 * 128 + 18 * 1000));
  const CacheLayout v3 = cache_layout(*language_stack(*catalog->find("deepseek-v3")));
  EXPECT_EQ(v3.runs[0].kind, CacheKind::latent);
  EXPECT_EQ(v3.runs[0].elements_on_rank(8), 576);
  const CacheLayout llama = cache_layout(*language_stack(*catalog->find("llama-3.1-8b")));
  EXPECT_EQ(llama.runs[0].elements_on_rank(1), 2048);
  EXPECT_EQ(llama.runs[0].elements_on_rank(8), 256);
  EXPECT_EQ(llama.runs[0].elements_on_rank(16), 256);  // repeated
}

}  // namespace
}  // namespace trigon
