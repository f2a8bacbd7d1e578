#pragma once
// The sizes of a file's inputs for one item: what the file fixes, what is said, batches of one.

#include <string>
#include <vector>

#include "base/message.hpp"
#include "model/item_options.hpp"
#include "onnx/proto.hpp"

namespace trigon::onnx {

struct InputSizes {
  std::string name;
  std::int32_t type = kFloat;
  std::vector<std::int64_t> shape;  // batch included
};

struct Inputs {
  std::vector<InputSizes> sizes;
  std::int64_t fixed_batch = 1;  // of the file, read as one
};

// Open dimensions that nothing settles are an error that names the inputs and the flag to say.
Result<Inputs> resolve_inputs(const OnnxFile& file, const ItemOptions& item,
                              const std::string& where, std::vector<Message>& notes);

}  // namespace trigon::onnx
