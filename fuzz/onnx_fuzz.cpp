// An ONNX file, read to the end, inferred and described.

#include "onnx/onnx_model.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/inspect.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trigon;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file = ByteSource::memory(bytes, "m.onnx");
  auto model = read_onnx(file);
  if (!model) {
    // Open dimensions: once more with sizes for pictures and texts.
    ItemOptions item;
    item.size = {64};
    model = read_onnx(file, item);
  }
  if (!model) {
    ItemOptions item;
    item.tokens = 16;
    model = read_onnx(file, item);
  }
  if (model) describe(*model);
  return 0;
}
