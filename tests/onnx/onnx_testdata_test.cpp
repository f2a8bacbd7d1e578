// ONNX's own backend tests (Debian: libonnx-testdata): one model for each operator and variant,
// with the values that go in and come out. The shapes that we infer must be those of the outputs.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "onnx/onnx_model.hpp"

namespace trigon::onnx {
namespace {

namespace fs = std::filesystem;

const fs::path kData = "/usr/share/libonnx-testdata/data";

std::vector<fs::path> cases(const char* folder) {
  std::vector<fs::path> out;
  std::error_code none;
  for (fs::directory_iterator it(kData / folder, none), end; it != end; it.increment(none))
    if (fs::is_directory(it->path() / "test_data_set_0")) out.push_back(it->path());
  std::sort(out.begin(), out.end());
  return out;
}

// What a case is found to be.
struct Outcome {
  std::string problem;  // empty: every shape is as it should be
  bool bounded = false;
};

std::optional<OnnxTensor> tensor_at(const fs::path& p) {
  auto source = ByteSource::open(p.string());
  if (!source) return std::nullopt;
  auto t = read_tensor_file(*source);
  // Files of sequences and optionals are other messages: they have no element type.
  if (!t || t->type == kUndefined || t->type > kBfloat16) return std::nullopt;
  return *t;
}

std::string text(const std::vector<std::int64_t>& s) {
  std::string out = "[";
  for (std::int64_t d : s) out += (out.size() > 1 ? "," : "") + std::to_string(d);
  return out + "]";
}

Outcome check(const fs::path& folder) {
  Outcome out;
  auto source = ByteSource::open((folder / "model.onnx").string());
  if (!source) return {"no model", false};
  auto file = read_onnx_file(*source);
  if (!file) return {"unreadable", false};
  std::set<std::string> stored;
  for (const OnnxTensor& t : file->graph.initializers) stored.insert(t.name);
  std::vector<InputSizes> inputs;
  std::map<std::string, OnnxTensor> contents;
  std::vector<std::unique_ptr<ByteSource>> kept;
  std::size_t number = 0;
  for (const OnnxValueInfo& v : file->graph.inputs) {
    const fs::path at = folder / "test_data_set_0" / ("input_" + std::to_string(number++) + ".pb");
    if (stored.count(v.name)) continue;
    if (!v.tensor) return {"skip", false};
    auto t = tensor_at(at);
    if (!t) return {"skip", false};
    inputs.push_back({v.name, t->type, t->dims});
    // Values that shapes may depend on: whole numbers, and a few floating-point ones.
    auto data = ByteSource::open(at.string());
    OnnxTensor known;
    known.dims = t->dims;
    known.type = t->type;
    std::int64_t n = 1;
    for (std::int64_t d : t->dims) n *= d;
    if (t->type == kInt64 || t->type == kInt32 || t->type == kBool) {
      if (auto values = integer_contents(*data, *t)) {
        known.integers = *values;
        contents[v.name] = known;
      }
    } else if ((number > 1 && n <= 8) || t->dims.empty()) {
      if (auto values = real_contents(*data, *t)) {
        known.type = kDouble;
        known.reals = *values;
        contents[v.name] = known;
      }
    }
  }
  auto got = import_graph(*source, *file, inputs, contents);
  if (!got) {
    std::string what = std::to_string(got.error().what.id.index);
    for (const MessageArg& a : got.error().what.args)
      if (auto s = std::get_if<std::string>(&a)) what += " " + *s;
    return {what, false};
  }
  for (const Message& m : got->notes) out.bounded = out.bounded || m.id.room == Room::onnx;
  for (std::size_t k = 0; k < got->outputs.size(); ++k) {
    auto want = tensor_at(folder / "test_data_set_0" / ("output_" + std::to_string(k) + ".pb"));
    if (!want || got->outputs[k].sequence) continue;
    if (out.bounded) {
      // An upper bound, whose rank is right.
      std::int64_t least = 1, most = 1;
      for (std::int64_t d : want->dims) least *= d;
      for (std::int64_t d : got->outputs[k].shape) most *= d;
      if (most < least || got->outputs[k].shape.size() != want->dims.size())
        out.problem = text(got->outputs[k].shape) + " bounds " + text(want->dims);
    } else if (got->outputs[k].shape != want->dims) {
      out.problem = "output " + std::to_string(k) + " is " + text(got->outputs[k].shape) +
                    " and should be " + text(want->dims);
    } else if (got->outputs[k].type == kBfloat16 && want->type == kUint16) {
      // These data hold bfloat16 as the whole numbers of their bits.
    } else if (got->outputs[k].type != want->type && out.problem.empty()) {
      out.problem = "output " + std::to_string(k) + " has type " +
                    std::to_string(got->outputs[k].type) + " and should have " +
                    std::to_string(want->type);
    }
  }
  return out;
}

// What we cannot express; each entry has to fail, so the list only shrinks.
const std::set<std::string> kRefused = {
    "test_loop11",           // the size of a slice is the number of the turn
    "test_gradient_of_add",  // gradients
    "test_gradient_of_add_and_mul",
};

class Backend : public testing::TestWithParam<const char*> {};

TEST_P(Backend, OutputShapesAreThoseOfTheData) {
  const auto all = cases(GetParam());
  if (all.empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::size_t skipped = 0;
  for (const fs::path& folder : all) {
    const Outcome o = check(folder);
    if (o.problem == "skip") {
      ++skipped;
      continue;
    }
    const std::string name = folder.filename().string();
    EXPECT_EQ(o.problem.empty(), !kRefused.count(name)) << name << ": " << o.problem;
  }
  // Inputs that are sequences or optional values cannot be given from outside.
  EXPECT_LE(skipped * 20, all.size());
  RecordProperty("cases", static_cast<int>(all.size()));
  RecordProperty("skipped", static_cast<int>(skipped));
}

INSTANTIATE_TEST_SUITE_P(Onnx, Backend,
                         testing::Values("node", "simple", "pytorch-converted",
                                         "pytorch-operator"));

}  // namespace
}  // namespace trigon::onnx
