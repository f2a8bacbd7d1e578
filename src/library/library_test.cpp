#include "library/library.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace trigon {
namespace {

namespace fs = std::filesystem;

struct Shelves {
  FactStore store;
  ModelCatalog models;
  NetworkCatalog networks;
};

const Shelves& shelves() {
  static const Shelves all = [] {
    Shelves s;
    s.store = *FactStore::embedded();
    s.models = *ModelCatalog::from(s.store);
    s.networks = *NetworkCatalog::from(s.store);
    return s;
  }();
  return all;
}

Result<Model> open(const std::string& what, const ItemOptions& item = {}) {
  return open_model(what, shelves().models, shelves().networks, item);
}

TEST(Library, PathsComeBeforeNamesAndBothSayWhatIsWrong) {
  auto named = open("Llama-3.1-8B");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->id, "llama-3.1-8b");
  auto no_file = open("./nothing.gguf");
  ASSERT_FALSE(no_file);
  EXPECT_EQ(no_file.error().code, ErrorCode::unreadable);
  auto no_name = open("no-such-model");
  ASSERT_FALSE(no_name);
  EXPECT_EQ(no_name.error().code, ErrorCode::unknown_name);
  const fs::path folder = fs::path(testing::TempDir()) / "trigon_library_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  auto empty = open(folder.string());
  ASSERT_FALSE(empty);
  EXPECT_TRUE(empty.error().hint);
  std::ofstream(folder / "config.json")
      << R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
             "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
             "intermediate_size": 128, "vocab_size": 96, "tie_word_embeddings": true})";
  EXPECT_TRUE(open(folder.string()));
  EXPECT_TRUE(open((folder / "config.json").string()));
  fs::remove_all(folder);
}

TEST(Library, NetworksByNameAndTheSizeOfTheirItem) {
  auto network = open("ResNet-50");
  ASSERT_TRUE(network);
  EXPECT_EQ(network->id, "resnet50");
  ItemOptions large;
  large.size = {448};
  auto scaled = open("resnet50", large);
  ASSERT_TRUE(scaled);
  EXPECT_EQ(scaled->item->size, (std::vector<std::int64_t>{448, 448}));
  large.size = {7};
  auto tiny = open("resnet50", large);
  ASSERT_FALSE(tiny);
  EXPECT_EQ(tiny.error().where, "--image");
  large.size = {224};
  auto language = open("llama-3.1-8b", large);
  ASSERT_FALSE(language);
  EXPECT_EQ(language.error().where, "--image");
  auto typo = open("resnet5O");
  ASSERT_FALSE(typo);
  ASSERT_TRUE(typo.error().hint);
}

}  // namespace
}  // namespace trigon
