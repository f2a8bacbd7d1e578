// A safetensors file: any bytes give a header or an error, and every tensor can be counted.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trigon;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto h = read_safetensors(ByteSource::memory(bytes, "m.safetensors")))
    for (const Tensor& t : h->tensors) (void)stored_parameters(t);
  return 0;
}
