#include "model/safetensors.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

std::string file_of(const std::string& json, std::size_t data) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(json.size() >> (8 * i) & 0xff);
  return out + json + std::string(data, '\0');
}

Result<SafetensorsHeader> read(const std::string& bytes) {
  return read_safetensors(ByteSource::memory(bytes, "m.safetensors"));
}

TEST(Safetensors, ReadsTensorsEmptyOnesToo) {
  auto h = read(file_of(R"({"__metadata__":{"format":"pt"},
    "b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},
    "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},
    "e":{"dtype":"F16","shape":[0,8],"data_offsets":[16,16]},
    "n":{"dtype":"F4","shape":[2],"data_offsets":[16,17]},
    "future":{"dtype":"Q7","shape":[5],"data_offsets":[17,20]}})",
                        20));
  ASSERT_TRUE(h) << h.error().where;
  ASSERT_EQ(h->tensors.size(), 5u);
  EXPECT_EQ(h->tensors[0].name, "a");
  EXPECT_EQ(h->tensors[1].format, Format::bf16);
  EXPECT_EQ(h->tensors[1].bytes->value(), 12);
  EXPECT_EQ(h->tensors[4].stored_type, "Q7");
  EXPECT_EQ(h->tensors[4].format, Format::unknown);
}

TEST(Safetensors, WrongFilesAreRefusedWithThePlace) {
  struct Case {
    std::string json;
    std::size_t data;
    const char* where;
  };
  for (const Case& c : std::initializer_list<Case>{
           {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}})", 8, "#/a/data_offsets"},
           {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 8, "#/a/data_offsets"},
           {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "#/a/data_offsets"},
           {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "#/a/shape"},
           {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})", 8,
            "#/a/shape"},
           {R"({"a":{"shape":[2],"data_offsets":[0,8]}})", 8, "#/a"},
           {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
               "b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
            8, "#/b"},
           {R"([1,2])", 8, ":8"},
       }) {
    auto h = read(file_of(c.json, c.data));
    ASSERT_FALSE(h) << c.json;
    EXPECT_EQ(h.error().code, ErrorCode::malformed);
    EXPECT_EQ(h.error().where, std::string("m.safetensors") + c.where) << c.json;
  }
}

TEST(Safetensors, LengthsThatLieAreRefused) {
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(read("1234"));
  EXPECT_FALSE(read(std::string(8, '\xff')));
  EXPECT_FALSE(read(std::string(8, '\0')));
  std::string cut = file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  auto h = read(cut.substr(0, 20));
  ASSERT_FALSE(h);
  EXPECT_EQ(h.error().where, "m.safetensors:8");
}

TEST(Safetensors, DeepNestingStops) {
  std::string deep(100000, '[');
  auto h = read(file_of(R"({"a":)" + deep + "}", 0));
  ASSERT_FALSE(h);
  EXPECT_EQ(h.error().code, ErrorCode::malformed);
}

TEST(Safetensors, IndexNamesStayInTheFolder) {
  auto good = read_safetensors_index(
      R"({"metadata":{"total_size":10},"weight_map":{"b":"m-2.safetensors","a":"m-1.safetensors"}})",
      "i.json");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->total_size, 10);
  EXPECT_EQ(good->files(), (std::vector<std::string>{"m-1.safetensors", "m-2.safetensors"}));
  for (const char* bad :
       {R"({"weight_map":{"a":"../x"}})", R"({"weight_map":{"a":"/etc/passwd"}})",
        R"({"weight_map":{"a":""}})", R"({"weight_map":{"a":7}})", R"({"weight_map":[]})", "{}"})
    EXPECT_FALSE(read_safetensors_index(bad, "i.json")) << bad;
}

TEST(Safetensors, PackedIntegersUnpackAndScalesDoNotCount) {
  auto count = [](const char* name, Format f, std::vector<std::int64_t> shape, std::int64_t bits) {
    Tensor t;
    t.name = name;
    t.format = f;
    t.shape = std::move(shape);
    return stored_parameters(t, bits);
  };
  // A 4096 x 4096 linear in each dialect.
  EXPECT_EQ(count("l.qweight", Format::i32, {512, 4096}, 4).count, 4096 * 4096);
  EXPECT_EQ(count("l.qweight", Format::i32, {1024, 4096}, 8).count, 4096 * 4096);
  EXPECT_EQ(count("l.weight_packed", Format::i32, {4096, 512}, 4).count, 4096 * 4096);
  EXPECT_EQ(count("l.weight_packed", Format::u8, {4096, 2048}, 4).count, 4096 * 4096);
  EXPECT_EQ(count("l.weight", Format::u8, {8388608, 1}, 4).count, 4096 * 4096);
  EXPECT_EQ(count("experts.down_proj_blocks", Format::u8, {32, 2880, 90, 16}, 4).count,
            32ll * 2880 * 2880);
  EXPECT_EQ(count("l.weight", Format::f8_e4m3, {4096, 4096}, 4).count, 4096 * 4096);
  for (const char* name : {"l.qzeros", "l.scales", "l.g_idx", "l.weight_scale",
                           "l.weight_scale_inv", "l.weight_scale_2", "l.input_scale",
                           "l.weight.absmax", "l.weight.quant_state.bitsandbytes__nf4", "l.SCB",
                           "experts.down_proj_scales", "self_attn.k_scale", "l.weight_shape"}) {
    EXPECT_EQ(count(name, Format::f32, {4096, 32}, 4).count, 0) << name;
    EXPECT_TRUE(count(name, Format::f32, {4096, 32}, 4).auxiliary) << name;
  }
  EXPECT_EQ(count("l.bias", Format::bf16, {4096}, 4).count, 4096);
}

}  // namespace
}  // namespace trigon
