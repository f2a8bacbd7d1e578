#pragma once
// One row of a table of measurements: its columns, and `key=value` pairs in its notes. Prose in
// notes is never read.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/csv.hpp"

namespace trigon {

enum class Schema : std::uint8_t { train, infer, memory, serving, ops, comm, matmul, run };

const char* schema_name(Schema s);
// By the columns that only one kind of table has.
Result<Schema> detect_schema(const CsvTable& table);

class Row {
 public:
  Row(const CsvTable& table, const CsvRow& row) : table_(&table), row_(&row) {}

  // The column; when it is absent or empty, the value of a key in the notes: the column's own name
  // or one of `note_keys`. Empty when nothing is stated.
  std::string_view text(std::string_view column,
                        std::initializer_list<std::string_view> note_keys = {}) const;
  // A finite number ("1,024" is not one). Empty when not stated or not a number.
  std::optional<double> number(std::string_view column,
                               std::initializer_list<std::string_view> note_keys = {}) const;
  std::optional<std::int64_t> whole(std::string_view column,
                                    std::initializer_list<std::string_view> note_keys = {}) const;
  bool flag(std::string_view column) const;  // "1"
  // All numbers of a column written "a+b+c"; without it those of the keys in the notes.
  std::vector<double> numbers(std::string_view column,
                              std::initializer_list<std::string_view> note_keys) const;
  bool has_column(std::string_view column) const { return table_->column(column).has_value(); }
  std::string where() const { return table_->where(*row_); }

  // owner/name of `source`, its first word when it is no repository.
  std::string repository() const;
  // Leading letters of the model's own name: llama, qwen, deepseek, gpt.
  std::string model_family() const;
  // The fold of the row: its column, or the same hash of source, device and model family that
  // tools/import_measured.py writes.
  int fold() const;

 private:
  std::string_view note(std::string_view key) const;
  // Calls `found(key, value)` for each pair until it returns true.
  template <class F>
  void each_note(F&& found) const;
  const CsvTable* table_;
  const CsvRow* row_;
};

constexpr int kFolds = 10;

}  // namespace trigon
