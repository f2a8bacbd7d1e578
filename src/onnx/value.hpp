#pragma once
// What a name of an ONNX graph stands for while the graph is read: an element type, a whole shape
// (batch included), and the contents where they decide shapes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/graph.hpp"
#include "onnx/proto.hpp"

namespace trigon::onnx {

struct Value;
using ValuePtr = std::shared_ptr<const Value>;

struct Value {
  std::int32_t type = kFloat;
  TensorShape shape;
  bool constant = false;  // the same for every item: computed once, kept like a weight
  // Known contents, row-major; at most kMostContents.
  std::optional<std::vector<std::int64_t>> integers;
  std::optional<std::vector<double>> reals;
  std::optional<std::vector<ValuePtr>> items;  // it is a sequence of tensors
  std::optional<ValueId> id;                   // in the graph; constants and empty values: none
  std::optional<std::size_t> stored;           // the constant whose bytes it shows
  std::vector<std::size_t> beside;             // scales and zero points of those bytes

  std::int64_t count() const { return elements(shape); }
  std::size_t rank() const { return shape.size(); }
  bool known() const { return integers || reals; }
};

// A constant of the file, or one computed from others, before a node uses it.
struct Constant {
  std::string name;
  TensorShape shape;
  std::int32_t type = kFloat;
  bool in_file = false;
  std::string elsewhere;  // the other file that holds its data
  std::optional<WeightId> weight = std::nullopt;
  std::optional<Format> format = std::nullopt;  // where the type does not tell it
};

std::string shape_text(const TensorShape& s);  // "1x3x224x224", "scalar"
// The format of an element; absent for types that no format holds.
std::optional<Format> format_of_type(std::int32_t type);
// Without a leading batch of one; a scalar is one element.
TensorShape item_shape(const TensorShape& whole);
// Right-aligned; absent when they do not fit.
std::optional<TensorShape> broadcast(const TensorShape& a, const TensorShape& b);

// No dimension, stride or value may be larger, so that sums stay within 64 bits.
constexpr std::int64_t kMostDimension = std::int64_t{1} << 40;
constexpr std::int64_t kMostElements = std::int64_t{1} << 42;
constexpr std::int64_t kMostStep = std::int64_t{1} << 20;
// Elements at most, checked; absent when above kMostElements.
std::optional<std::int64_t> checked_elements(const TensorShape& s);

}  // namespace trigon::onnx
