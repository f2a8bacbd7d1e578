#pragma once
// Readers of safetensors headers (an 8-byte length and JSON; the data is never touched) and of
// `*.safetensors.index.json`.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/byte_source.hpp"
#include "model/model.hpp"

namespace trigon {

struct SafetensorsHeader {
  std::vector<Tensor> tensors;  // in the order of their data
  std::int64_t data_offset = 0;
  bool header_only = false;  // the file ends where the data would begin
};

Result<SafetensorsHeader> read_safetensors(const ByteSource& file);

struct SafetensorsIndex {
  std::optional<std::int64_t> total_size;                   // bytes, as stated
  std::vector<std::pair<std::string, std::string>> shards;  // tensor, file; sorted by tensor
  std::vector<std::string> files() const;                   // sorted, each once
};

Result<SafetensorsIndex> read_safetensors_index(std::string_view text, const std::string& where);

// What a stored tensor holds: packed integers unpacked, scales and zero points not counted.
// `packed_bits` is the width of integer weights (of GPTQ, AWQ) where the config states one.
struct StoredParameters {
  std::int64_t count = 0;
  bool auxiliary = false;  // scales, zero points, masks, rotary tables
};
StoredParameters stored_parameters(const Tensor& t, std::int64_t packed_bits = 4);

}  // namespace trigon
