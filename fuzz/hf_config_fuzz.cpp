// A config.json, built to the end: any text gives a model or an error.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "model/decoder_spec.hpp"
#include "model/hf_config.hpp"
#include "model/inspect.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trigon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto spec = read_hf_config(text, "config.json");
  if (!spec) return 0;
  auto model = build_decoder(*spec, "config.json");
  if (!model) return 0;
  // Hundreds of distinct layers say nothing more than a few.
  if (language_stack(*model)->runs.size() < 64) describe(*model);
  return 0;
}
