#pragma once
// Reader of GGUF headers, versions 1 to 3, little and big endian; the data is never touched.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/byte_source.hpp"
#include "model/model.hpp"

namespace trigon {

// Lists of numbers are kept up to a length that per-layer lists never reach; of longer ones, and
// of texts (the tokenizer's), only the length is.
struct GgufList {
  std::int64_t length = 0;
  std::vector<double> numbers;
};
using GgufValue = std::variant<bool, std::int64_t, double, std::string, GgufList>;

struct GgufEntry {
  std::string key;
  GgufValue value;
};

struct GgufHeader {
  std::int64_t version = 0;
  bool big_endian = false;
  std::vector<GgufEntry> metadata;
  std::vector<Tensor> tensors;
  std::int64_t data_offset = 0;
  bool header_only = false;  // the file ends where the data would begin

  const GgufValue* find(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  const GgufList* list(std::string_view key) const;
};

Result<GgufHeader> read_gguf(const ByteSource& file);

// ggml's tensor types by number, with those of ik_llama.cpp; the name also of types whose size
// is not known.
struct GgmlType {
  std::uint32_t number;
  std::string_view name;
  Format format;
};
const GgmlType* ggml_type(std::uint32_t number);

// "model-00002-of-00005.gguf" -> the name of part `part` (from 1); empty when not so named.
struct SplitName {
  std::string stem;
  std::int64_t part = 0, parts = 0;
  std::string of(std::int64_t part) const;
};
std::optional<SplitName> split_name(std::string_view file_name);

}  // namespace trigon
