#include "model/module_patterns.hpp"

#include <algorithm>
#include <charconv>

namespace trigon {
namespace {

// Real configs hold a few thousand patterns, nearly all with a layer's number; the bounds keep
// the work on a hostile one small.
constexpr std::size_t kMaxEverywhere = 256, kMaxOfLayer = 4096, kMaxLength = 256;

bool glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = t;
    } else if (p < pattern.size() && (pattern[p] == text[t] || pattern[p] == '?')) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// Whole dotted components: "gate" is in "mlp.gate" but not in "mlp.gate_proj".
bool has_components(std::string_view path, std::string_view part) {
  for (std::size_t at = path.find(part); at != path.npos; at = path.find(part, at + 1)) {
    bool starts = at == 0 || path[at - 1] == '.';
    std::size_t end = at + part.size();
    if (starts && (end == path.size() || path[end] == '.')) return true;
  }
  return false;
}

bool matches(std::string_view pattern, std::string_view path) {
  if (pattern.empty()) return true;
  if (pattern.find('*') == pattern.npos) return has_components(path, pattern);
  return glob(pattern, path) || glob(std::string(pattern) + ".*", path) ||
         glob("*." + std::string(pattern), path);
}

// Regular expressions in these lists use little more than ".*" and "\.": as a glob.
std::string glob_of_regex(std::string_view r) {
  std::string out;
  for (std::size_t i = 0; i < r.size(); ++i) {
    if (r[i] == '\\' && i + 1 < r.size()) {
      ++i;
      out += r[i] == 'd' ? '*' : r[i];
      if (r[i] == 'd' && i + 1 < r.size() && r[i + 1] == '+') ++i;
    } else if (r[i] == '.' && i + 1 < r.size() && (r[i + 1] == '*' || r[i + 1] == '+')) {
      out += '*';
      ++i;
    } else if (r[i] != '^' && r[i] != '$') {
      out += r[i];
    }
  }
  return out;
}

}  // namespace

void ModulePatterns::add(std::string_view pattern) {
  if (pattern.size() > kMaxLength) return;
  std::string p(pattern);
  if (p.rfind("re:", 0) == 0) p = glob_of_regex(std::string_view(p).substr(3));
  // The first component that is a number is the layer's; one that is "*" stands for any.
  std::size_t start = 0;
  while (start <= p.size()) {
    std::size_t end = std::min(p.find('.', start), p.size());
    std::string_view part = std::string_view(p).substr(start, end - start);
    std::string_view digits = part;
    bool open = !digits.empty() && digits.back() == '*' && digits.size() > 1;
    if (open) digits.remove_suffix(1);
    std::int64_t layer = 0;
    auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), layer);
    if (error == std::errc{} && stop == digits.data() + digits.size() && !digits.empty()) {
      auto& list = of_layer_[layer];
      if (list.size() < kMaxOfLayer) list.push_back(end < p.size() ? p.substr(end + 1) : "");
      return;
    }
    if (part == "*" && start >= 2 && end < p.size()) {
      p = p.substr(end + 1);
      break;
    }
    start = end + 1;
  }
  if (p.empty() || std::find(everywhere_.begin(), everywhere_.end(), p) != everywhere_.end())
    return;
  if (everywhere_.size() < kMaxEverywhere) everywhere_.push_back(std::move(p));
}

bool ModulePatterns::in_layer(std::int64_t layer, std::string_view path) const {
  if (auto it = of_layer_.find(layer); it != of_layer_.end())
    for (const std::string& p : it->second)
      if (matches(p, path)) return true;
  return outside(path);
}

bool ModulePatterns::outside(std::string_view path) const {
  for (const std::string& p : everywhere_)
    if (matches(p, path)) return true;
  return false;
}

}  // namespace trigon
