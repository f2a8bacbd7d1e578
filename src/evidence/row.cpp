#include "evidence/row.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "evidence/messages.hpp"

namespace trigon {

namespace {

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::uint64_t fnv1a(std::string_view s) {
  std::uint64_t h = 0xCBF29CE484222325u;
  for (const char c : s) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return h;
}

std::string family_of(std::string_view model) {
  const auto slash = model.rfind('/');
  const std::string name = lower(slash == std::string_view::npos ? model : model.substr(slash + 1));
  auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto first = std::find_if(name.begin(), name.end(), letter);
  if (first == name.end()) return name;
  return {first, std::find_if_not(first, name.end(), letter)};
}

}  // namespace

const char* schema_name(Schema s) {
  constexpr std::array names = {"train", "infer", "memory", "serving",
                                "ops",   "comm",  "matmul", "run"};
  return names[static_cast<std::size_t>(s)];
}

Result<Schema> detect_schema(const CsvTable& table) {
  auto all = [&](std::initializer_list<std::string_view> columns) {
    return std::all_of(columns.begin(), columns.end(),
                       [&](std::string_view c) { return table.column(c).has_value(); });
  };
  if (all({"framework", "micro_batch", "metric", "value"})) return Schema::train;
  if (all({"component", "unit", "value"})) return Schema::memory;
  if (all({"decode_workers", "metric", "value"})) return Schema::serving;
  if (all({"batch_or_concurrency", "metric", "value"})) return Schema::infer;
  if (all({"collective", "payload_bytes"})) return Schema::comm;
  if (all({"achieved_tflops", "shape_mnk"})) return Schema::matmul;
  if (all({"op"})) return Schema::ops;
  if (all({"arrival_s"}) || all({"ttft_ms", "e2e_ms"})) return Schema::run;
  return fail(ErrorCode::unsupported, message(EvidenceMessage::unknown_schema), table.file + ":1",
              message(EvidenceMessage::known_schemas));
}

template <class F>
void Row::each_note(F&& found) const {
  const auto column = table_->column("notes");
  if (!column) return;
  std::string_view rest = row_->fields[*column];
  constexpr std::string_view separators = ";, \t\n()";
  while (!rest.empty()) {
    const auto start = rest.find_first_not_of(separators);
    if (start == std::string_view::npos) return;
    rest.remove_prefix(start);
    const auto end = std::min(rest.find_first_of(separators), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(end);
    const auto equals = word.find('=');
    if (equals != std::string_view::npos && found(word.substr(0, equals), word.substr(equals + 1)))
      return;
  }
}

std::string_view Row::note(std::string_view key) const {
  std::string_view value;
  each_note([&](std::string_view k, std::string_view v) {
    if (k == key) value = v;
    return k == key;
  });
  return value;
}

std::string_view Row::text(std::string_view column,
                           std::initializer_list<std::string_view> note_keys) const {
  if (const auto i = table_->column(column); i && !row_->fields[*i].empty())
    return row_->fields[*i];
  if (const auto own = note(column); !own.empty()) return own;
  for (const std::string_view key : note_keys)
    if (const auto found = note(key); !found.empty()) return found;
  return {};
}

std::optional<double> Row::number(std::string_view column,
                                  std::initializer_list<std::string_view> note_keys) const {
  const std::string_view t = text(column, note_keys);
  double v = 0;
  const auto [end, code] = std::from_chars(t.data(), t.data() + t.size(), v);
  if (t.empty() || code != std::errc{} || end != t.data() + t.size() || !std::isfinite(v))
    return std::nullopt;
  return v;
}

std::optional<std::int64_t> Row::whole(std::string_view column,
                                       std::initializer_list<std::string_view> note_keys) const {
  const auto v = number(column, note_keys);
  if (!v || *v != std::floor(*v) || std::fabs(*v) > 1e15) return std::nullopt;
  return static_cast<std::int64_t>(*v);
}

std::vector<double> Row::numbers(std::string_view column,
                                 std::initializer_list<std::string_view> note_keys) const {
  std::vector<double> out;
  auto add = [&](std::string_view t) {
    double v = 0;
    const auto [end, code] = std::from_chars(t.data(), t.data() + t.size(), v);
    if (!t.empty() && code == std::errc{} && end == t.data() + t.size() && std::isfinite(v))
      out.push_back(v);
  };
  if (const auto i = table_->column(column); i && !row_->fields[*i].empty()) {
    for (std::string_view rest = row_->fields[*i]; !rest.empty();) {
      const auto plus = std::min(rest.find('+'), rest.size());
      add(rest.substr(0, plus));
      rest.remove_prefix(std::min(plus + 1, rest.size()));
    }
    return out;
  }
  each_note([&](std::string_view k, std::string_view v) {
    if (std::find(note_keys.begin(), note_keys.end(), k) != note_keys.end()) add(v);
    return false;
  });
  return out;
}

bool Row::flag(std::string_view column) const { return text(column) == "1"; }

std::string Row::repository() const {
  std::string_view s = text("source");
  if (s.substr(0, 7) == "github:") s.remove_prefix(7);
  s = s.substr(0, s.find_first_of(" \t@:"));
  const auto slash = s.find('/');
  if (slash != std::string_view::npos) s = s.substr(0, s.find('/', slash + 1));
  return std::string(s);
}

std::string Row::model_family() const { return family_of(text("model")); }

int Row::fold() const {
  if (const auto stated = whole("fold"); stated && *stated >= 0 && *stated < kFolds)
    return static_cast<int>(*stated);
  std::string repository_key = repository();
  // Rounds of one benchmark share it, so that a machine entered again never straddles folds.
  if (repository_key.substr(0, 10) == "mlcommons/") repository_key = "mlcommons";
  const std::string key = repository_key + "|" + lower(text("gpu")) + "|" + model_family();
  return static_cast<int>(fnv1a(key) % kFolds);
}

}  // namespace trigon
