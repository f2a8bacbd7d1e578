#include "evidence/csv.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "evidence/messages.hpp"

namespace trigon {

namespace {

// Length of the UTF-8 sequence at `s`, 0 when it is not one (overlong forms, surrogates and
// values past U+10FFFF are not).
std::size_t utf8_length(std::string_view s) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  auto continues = [&](std::size_t i, unsigned low, unsigned high) {
    return i < s.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    return continues(1, low, high) && continues(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2, 0x80, 0xBF) && continues(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view file) : text_(text), file_(file) {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
  }

  bool at_end() const { return at_ >= text_.size(); }
  std::size_t line() const { return line_; }

  // One record with its line break.
  Result<std::vector<std::string>> record() {
    std::vector<std::string> fields;
    for (;;) {
      if (fields.size() == kCsvMaxColumns)
        return bad(message(EvidenceMessage::csv_too_many_columns, kCsvMaxColumns));
      auto field = at_ < text_.size() && text_[at_] == '"' ? quoted() : plain();
      if (!field) return tl::unexpected(field.error());
      fields.push_back(std::move(*field));
      if (at_end()) return fields;
      if (text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (text_[at_] == '\r') ++at_;
      ++at_;  // the line feed, which plain() and quoted() made sure of
      ++line_;
      return fields;
    }
  }

  tl::unexpected<Error> bad(Message what) const {
    return fail(ErrorCode::malformed, std::move(what),
                std::string(file_) + ":" + std::to_string(line_));
  }

 private:
  bool at_break() const {
    return text_[at_] == '\n' ||
           (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
  }

  // Appends the character at the cursor, which may be several bytes.
  Result<std::size_t> take(std::string& into) {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F)
      return bad(message(EvidenceMessage::csv_control_byte, static_cast<std::int64_t>(byte)));
    const std::size_t n = utf8_length(text_.substr(at_));
    if (n == 0) return bad(message(EvidenceMessage::csv_bad_utf8));
    if (into.size() + n > kCsvMaxField)
      return bad(message(EvidenceMessage::csv_field_too_long,
                         Bytes::base(static_cast<double>(kCsvMaxField))));
    into.append(text_.substr(at_, n));
    at_ += n;
    return n;
  }

  Result<std::string> plain() {
    std::string field;
    while (!at_end() && text_[at_] != ',' && !at_break()) {
      if (text_[at_] == '"') return bad(message(EvidenceMessage::csv_stray_quote));
      if (text_[at_] == '\r')
        return bad(message(EvidenceMessage::csv_control_byte, std::int64_t{'\r'}));
      if (auto taken = take(field); !taken) return tl::unexpected(taken.error());
    }
    return field;
  }

  Result<std::string> quoted() {
    const std::size_t opened = line_;
    std::string field;
    ++at_;
    for (;;) {
      if (at_end()) {
        line_ = opened;
        return bad(message(EvidenceMessage::csv_open_quote));
      }
      if (text_[at_] == '"') {
        ++at_;
        if (!at_end() && text_[at_] == '"') {
          field.push_back('"');
          ++at_;
          continue;
        }
        if (!at_end() && text_[at_] != ',' && !at_break())
          return bad(message(EvidenceMessage::csv_after_quote));
        return field;
      }
      if (text_[at_] == '\n') ++line_;
      if (auto taken = take(field); !taken) return tl::unexpected(taken.error());
    }
  }

  std::string_view text_, file_;
  std::size_t at_ = 0, line_ = 1;
};

}  // namespace

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto it = std::find(columns.begin(), columns.end(), name);
  if (it == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(it - columns.begin());
}

std::string CsvTable::where(const CsvRow& row) const {
  return file + ":" + std::to_string(row.line);
}

Result<CsvTable> parse_csv(std::string_view text, std::string_view file) {
  CsvTable table;
  table.file = std::string(file);
  Reader reader(text, file);
  if (reader.at_end()) return reader.bad(message(EvidenceMessage::csv_no_header));
  auto header = reader.record();
  if (!header) return tl::unexpected(header.error());
  const std::string first_line = table.file + ":1";
  for (std::size_t i = 0; i < header->size(); ++i) {
    const std::string& name = (*header)[i];
    if (name.empty())
      return fail(ErrorCode::malformed, message(EvidenceMessage::csv_unnamed_column, i + 1),
                  first_line);
    if (std::find(header->begin(), header->begin() + static_cast<std::ptrdiff_t>(i), name) !=
        header->begin() + static_cast<std::ptrdiff_t>(i))
      return fail(ErrorCode::malformed, message(EvidenceMessage::csv_repeated_column, name),
                  first_line);
  }
  table.columns = std::move(*header);
  while (!reader.at_end()) {
    CsvRow row;
    row.line = reader.line();
    auto fields = reader.record();
    if (!fields) return tl::unexpected(fields.error());
    // A lone empty field is an empty line; only a table of one column may have it as a value.
    if (fields->size() == 1 && fields->front().empty() && table.columns.size() > 1) continue;
    if (fields->size() != table.columns.size())
      return fail(ErrorCode::malformed,
                  message(EvidenceMessage::csv_ragged, fields->size(), table.columns.size()),
                  table.where(row));
    row.fields = std::move(*fields);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Result<CsvTable> read_csv(const std::filesystem::path& path) {
  const std::string where = path.string();
  std::error_code code;
  const auto size = std::filesystem::file_size(path, code);
  if (code)
    return fail(ErrorCode::unreadable, message(BaseMessage::cannot_open, code.message()), where);
  if (size > kCsvMaxFile)
    return fail(ErrorCode::unreadable,
                message(BaseMessage::file_too_large, bytes(static_cast<double>(size)),
                        bytes(static_cast<double>(kCsvMaxFile))),
                where);
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  if (!in || !in.read(text.data(), static_cast<std::streamsize>(size)))
    return fail(ErrorCode::unreadable, message(BaseMessage::cannot_open, std::strerror(errno)),
                where);
  return parse_csv(text, where);
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out.push_back('"');
    out.push_back(c);
  }
  out.push_back('"');
  return out;
}

}  // namespace trigon
