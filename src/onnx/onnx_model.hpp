#pragma once
// ONNX files as models: one component that is a graph.

#include <map>
#include <string>
#include <vector>

#include "model/item_options.hpp"
#include "model/model.hpp"
#include "onnx/inputs.hpp"
#include "onnx/proto.hpp"

namespace trigon {

// The graph for one item: open batches are one, other open dimensions come from `item`.
Result<Model> read_onnx(const ByteSource& file, const ItemOptions& item = {});
Result<Model> open_onnx_file(const std::string& path, const ItemOptions& item = {});

namespace onnx {

struct NamedValue {
  std::string name;
  std::int32_t type = kFloat;
  std::vector<std::int64_t> shape;  // batch included
  bool sequence = false;
};
struct Imported {
  Graph graph;
  std::vector<NamedValue> outputs;
  std::vector<Message> notes;
};
// `contents`: values of inputs that shapes depend on, by name.
Result<Imported> import_graph(const ByteSource& source, const OnnxFile& file,
                              const std::vector<InputSizes>& inputs,
                              const std::map<std::string, OnnxTensor>& contents = {});

}  // namespace onnx
}  // namespace trigon
