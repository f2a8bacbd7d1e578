// A safetensors index: any text gives names of files in the folder or an error.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "model/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trigon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto index = read_safetensors_index(text, "index.json"))
    for (const std::string& f : index->files())
      if (f.empty() || f.find('/') != f.npos || f == "..") std::abort();
  return 0;
}
