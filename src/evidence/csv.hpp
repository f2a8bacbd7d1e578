#pragma once
// A strict reader of comma-separated tables (RFC 4180, LF or CRLF, optional UTF-8 mark). The first
// line names the columns; every row has as many fields. Whatever breaks the format is an error
// with file and line; nothing is guessed. Files may be hostile: sizes are limited, control bytes
// and bytes that are not UTF-8 are refused.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trigon {

struct CsvRow {
  std::size_t line = 0;  // where the row starts, from 1
  std::vector<std::string> fields;
};

struct CsvTable {
  std::string file;
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;

  std::optional<std::size_t> column(std::string_view name) const;
  // "file:line", for messages.
  std::string where(const CsvRow& row) const;
};

constexpr std::size_t kCsvMaxColumns = 512;
constexpr std::size_t kCsvMaxField = std::size_t{1} << 20;  // bytes
constexpr std::size_t kCsvMaxFile = std::size_t{1} << 28;   // bytes

Result<CsvTable> parse_csv(std::string_view text, std::string_view file);
Result<CsvTable> read_csv(const std::filesystem::path& path);

// A field as it has to be written: quoted when it holds a comma, a quote or a line break.
std::string csv_field(std::string_view text);

}  // namespace trigon
