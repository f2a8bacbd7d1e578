#pragma once
// Values of a group of facts by key, with what stands for a missing one.

#include <string>
#include <string_view>

#include "base/facts.hpp"

namespace trigon {

inline std::string text_of(const FactGroup& g, std::string_view key) {
  const Fact* f = find_fact(g.facts, key);
  const auto* v = f ? std::get_if<std::string>(&f->value) : nullptr;
  return v ? *v : std::string();
}

inline double number_of(const FactGroup& g, std::string_view key, double otherwise) {
  const Fact* f = find_fact(g.facts, key);
  const auto* v = f ? std::get_if<double>(&f->value) : nullptr;
  return v ? *v : otherwise;
}

}  // namespace trigon
