#pragma once
// Fixed-width tables that fit the terminal: numbers to the right, one unit per column in the
// header, `-` for unknown. What does not fit is left out from the right by `priority` and named.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "present/numbers.hpp"
#include "present/screen.hpp"

namespace trigon {

struct Column {
  std::string header;
  bool number = false;  // right-aligned
  int priority = 0;     // columns with the highest number go first when space is short; 0 stays
  int shrink_to = 0;    // a text column may be cut down to this width; 0: never
};

struct Cell {
  Cell() = default;
  Cell(std::string t, Tone k = Tone::plain) : text(std::move(t)), tone(k) {}
  Cell(std::string_view t) : text(t) {}
  Cell(const char* t) : text(t) {}
  std::string text;
  Tone tone = Tone::plain;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void row(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  std::size_t rows() const { return rows_.size(); }
  // Lines with their line ends. `top` limits the rows (0: all). Hidden rows and columns are
  // named in a last line.
  std::string text(const TextStyle& style, int indent = 0, int top = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// Values of one metric over the rows of a table, in one unit: the header's word is the unit's.
class NumberColumn {
 public:
  explicit NumberColumn(std::string unit) : unit_(std::move(unit)) {}
  void see(double v);  // every value first, so that the unit suits the largest
  std::string header(std::string_view name) const;  // "free GiB"
  std::string cell(double v) const;
  std::string cell(const std::optional<Estimate<double>>& e) const;

 private:
  std::string unit_;
  std::vector<double> seen_;
  Scale scale() const;
};

}  // namespace trigon
