// A GGUF file, built to the end.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/gguf_model.hpp"
#include "model/inspect.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trigon;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto h = read_gguf(ByteSource::memory(bytes, "m.gguf"));
  if (!h) return 0;
  auto read = read_gguf_model(*h, h->tensors, "m.gguf");
  if (!read) return 0;
  auto model = build_decoder(read->spec, "m.gguf");
  if (model && language_stack(*model)->runs.size() < 64) describe(*model);
  return 0;
}
