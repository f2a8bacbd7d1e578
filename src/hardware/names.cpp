#include "hardware/names.hpp"

#include <algorithm>

namespace trigon {

std::string normalised_name(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  for (char c : name) {
    if (c == ' ' || c == '\t' || c == '-' || c == '_') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest_name(std::string_view name,
                                        const std::vector<std::string_view>& candidates) {
  std::string wanted = normalised_name(name);
  std::size_t best = wanted.size() / 3 + 2;
  std::optional<std::string> found;
  for (std::string_view c : candidates) {
    std::string key = normalised_name(c);
    std::size_t longer = std::max(key.size(), wanted.size());
    if (longer - std::min(key.size(), wanted.size()) >= best) continue;
    std::size_t d = edit_distance(wanted, key);
    if (d < best) {
      best = d;
      found = std::string(c);
    }
  }
  return found;
}

}  // namespace trigon
