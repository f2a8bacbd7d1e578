#pragma once
// The messages of onnx.proto (https://github.com/onnx/onnx, IR version 3 to 12) as plain values.
// Fields that say nothing about shapes or cost are left in the file.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_count.hpp"
#include "model/byte_source.hpp"

namespace trigon::onnx {

// Numbers of TensorProto.DataType.
enum DataType : std::int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26
};

// Contents of larger tensors are weights: they stay in the file.
constexpr std::int64_t kMostContents = 1 << 16;

struct OnnxTensor {
  std::string name;
  std::int32_t type = kUndefined;
  std::vector<std::int64_t> dims;
  std::int64_t raw_at = 0, raw_size = -1;  // of raw_data in the file; -1: none
  std::vector<std::int64_t> integers;      // of the typed fields
  std::vector<double> reals;
  std::int64_t typed = 0;                // numbers in the typed fields
  std::optional<std::string> elsewhere;  // the file that holds the data
};

struct OnnxDimension {
  std::optional<std::int64_t> value;
  std::string symbol;  // empty: a fixed or unnamed dimension
};

struct OnnxValueInfo {
  std::string name;
  std::int32_t type = kUndefined;
  bool tensor = false;  // not a sequence, map or optional
  std::optional<std::vector<OnnxDimension>> shape;
};

struct OnnxGraph;

struct OnnxAttribute {
  std::string name;
  std::string reference;  // the attribute of the enclosing function it stands for
  std::optional<double> real;
  std::optional<std::int64_t> integer;
  std::optional<std::string> text;
  std::shared_ptr<OnnxTensor> tensor;
  std::shared_ptr<OnnxGraph> graph;
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  std::vector<std::string> texts;
  bool list = false;  // one of the lists was given
};

struct OnnxNode {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
  const OnnxAttribute* attribute(std::string_view key) const;
};

struct OnnxGraph {
  std::string name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  std::vector<OnnxValueInfo> inputs, outputs;
};

struct OnnxFunction {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<OnnxAttribute> defaults;
  std::vector<OnnxNode> nodes;
  std::map<std::string, std::int64_t> opsets;
};

struct OnnxFile {
  std::int64_t ir_version = 0;
  std::string producer, producer_version;
  std::map<std::string, std::int64_t> opsets;  // "" is ai.onnx
  OnnxGraph graph;
  std::vector<OnnxFunction> functions;
};

Result<OnnxFile> read_onnx_file(const ByteSource& file);
// A file that holds one TensorProto, as ONNX's own tests store values.
Result<OnnxTensor> read_tensor_file(const ByteSource& file);

// Bits of an element as stored; 0 for strings and unknown types.
std::int64_t bits_of(std::int32_t type);
bool is_floating(std::int32_t type);
bool is_integer(std::int32_t type);  // booleans too
// Of tensors of at most kMostContents elements; absent when they are not in the file.
std::optional<std::vector<std::int64_t>> integer_contents(const ByteSource& file,
                                                          const OnnxTensor& t);
std::optional<std::vector<double>> real_contents(const ByteSource& file, const OnnxTensor& t);

}  // namespace trigon::onnx
