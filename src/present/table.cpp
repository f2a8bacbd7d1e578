#include "present/table.hpp"

#include <algorithm>
#include <cmath>

#include "base/quantity.hpp"
#include "present/words.hpp"

namespace trigon {
namespace {

std::string padded(const Cell& cell, int width, bool right, bool last, const TextStyle& style) {
  std::string text = truncated(cell.text, width);
  auto space = static_cast<std::size_t>(std::max(0, width - display_width(text)));
  std::string ink = painted(text, cell.tone, style.colour);
  if (right) return std::string(space, ' ') + ink;
  return last ? ink : ink + std::string(space, ' ');
}

}  // namespace

std::string Table::text(const TextStyle& style, int indent, int top) const {
  std::size_t shown = rows_.size();
  if (top > 0) shown = std::min(shown, static_cast<std::size_t>(top));
  std::vector<int> widths(columns_.size());
  std::vector<bool> hidden(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths[c] = display_width(columns_[c].header);
    bool known = false;
    for (std::size_t r = 0; r < shown; ++r) {
      if (c >= rows_[r].size()) continue;
      widths[c] = std::max(widths[c], display_width(rows_[r][c].text));
      known = known || (!rows_[r][c].text.empty() && rows_[r][c].text != "-");
    }
    // A column nobody knows anything of is not worth its place; nothing is hidden by that.
    if (!known && shown > 0 && columns_[c].priority > 0) hidden[c] = true;
  }
  std::vector<bool> unknown = hidden;
  constexpr int gap = 2;
  auto total = [&] {
    int t = indent - gap;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (!hidden[c]) t += widths[c] + gap;
    return t;
  };
  while (total() > style.width) {
    int over = total() - style.width;
    int worst = 0;
    std::size_t drop = columns_.size(), cut = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (hidden[c]) continue;
      if (columns_[c].priority >= std::max(worst, 1)) worst = columns_[c].priority, drop = c;
      if (columns_[c].shrink_to > 0 && widths[c] > columns_[c].shrink_to) cut = c;
    }
    // Cutting a few columns of text is better than losing a column of numbers.
    if (cut < columns_.size() && widths[cut] - columns_[cut].shrink_to >= over)
      widths[cut] -= over;
    else if (drop < columns_.size())
      hidden[drop] = true;
    else if (cut < columns_.size())
      widths[cut] = columns_[cut].shrink_to;
    else
      break;
  }
  std::size_t last = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (!hidden[c]) last = c;
  std::string out;
  auto line = [&](const std::vector<Cell>& cells) {
    std::string text(static_cast<std::size_t>(indent), ' ');
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (hidden[c]) continue;
      const Cell none("-");
      text += padded(c < cells.size() ? cells[c] : none, widths[c], columns_[c].number, c == last,
                     style);
      if (c != last) text += "  ";
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    out += text + "\n";
  };
  std::vector<Cell> headers;
  for (const Column& c : columns_) headers.emplace_back(c.header, Tone::strong);
  line(headers);
  for (std::size_t r = 0; r < shown; ++r) line(rows_[r]);

  std::vector<std::string> left_out;
  if (shown < rows_.size())
    left_out.push_back(
        render(message(PresentMessage::more_rows, rows_.size() - shown), style.language));
  std::string names;
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (hidden[c] && !unknown[c]) names += (names.empty() ? "" : ", ") + columns_[c].header;
  if (!names.empty())
    left_out.push_back(render(message(PresentMessage::columns_hidden, names), style.language));
  for (const std::string& note : left_out)
    for (const std::string& l : wrapped(note, style.width - indent))
      out += std::string(static_cast<std::size_t>(indent), ' ') +
             painted(l, Tone::faint, style.colour) + "\n";
  return out;
}

void NumberColumn::see(double v) {
  if (std::isfinite(v) && v != 0) seen_.push_back(std::fabs(v));
}

// The unit of the median value: one outlier must not turn the rest into zeros.
Scale NumberColumn::scale() const {
  if (seen_.empty()) return scale_for(unit_ == "B" ? kGi : 1, unit_);
  std::vector<double> sorted = seen_;
  std::sort(sorted.begin(), sorted.end());
  Scale s = scale_for(sorted[sorted.size() / 2], unit_);
  // Memory in GiB throughout, as cards are named by it.
  if (unit_ == "B" && s.factor > kMi) s = {kGi, "GiB"};
  return s;
}

std::string NumberColumn::header(std::string_view name) const {
  std::string unit(scale().unit);
  if (unit == "/s" || unit == "/h") return std::string(name) + unit;
  return unit.empty() ? std::string(name) : std::string(name) + " " + unit;
}

std::string NumberColumn::cell(double v) const {
  if (!std::isfinite(v)) return "-";
  if (unit_ == "tokens") {
    if (std::fabs(v) >= 1e7) return short_count(v);
    return significant(v);
  }
  if (unit_ == "" && v == std::floor(v)) return whole(static_cast<std::int64_t>(v));
  return significant(v / scale().factor);
}

std::string NumberColumn::cell(const std::optional<Estimate<double>>& e) const {
  return e ? cell(e->value) : "-";
}

}  // namespace trigon
