#include "memory/memory_errors.hpp"

#include <algorithm>

namespace trigon {

Range range_of(const RankMemory& memory, const MemoryErrors& errors, MemoryTerms terms) {
  double sum = 0, spread = 0;
  for (std::size_t i = 0; i < kMemoryTerms; ++i) {
    const auto t = static_cast<MemoryTerm>(i);
    if ((terms & bit(t)) == 0) continue;
    sum += memory[t];
    spread += memory[t] * (counted_exactly(t) ? errors.counted : errors.estimated);
  }
  return {std::max(0.0, sum - spread), sum, sum + spread};
}

std::string memory_error_key(std::string_view engine, bool training) {
  return std::string(engine) + (training ? "/train" : "/serve");
}

MemoryErrorTable read_memory_errors(const FactSheet& sheet) {
  MemoryErrorTable table;
  for (const FactGroup& g : sheet.groups) {
    auto text = [&](const char* key) {
      const Fact* f = find_fact(g.facts, key);
      auto v = f ? std::get_if<std::string>(&f->value) : nullptr;
      return v ? *v : std::string();
    };
    auto number = [&](const char* key, double otherwise) {
      const Fact* f = find_fact(g.facts, key);
      auto v = f ? std::get_if<double>(&f->value) : nullptr;
      return v ? *v : otherwise;
    };
    const MemoryErrors none;
    table[text("engine") + "/" + text("phase")] = {number("counted", none.counted),
                                                   number("estimated", none.estimated), true};
  }
  return table;
}

MemoryErrors find_memory_errors(const MemoryErrorTable& table, std::string_view engine,
                                bool training) {
  if (const auto own = table.find(memory_error_key(engine, training)); own != table.end())
    return own->second;
  MemoryErrors e;
  if (const auto any = table.find(memory_error_key("any", training)); any != table.end())
    e = any->second;
  e.validated = false;
  return e;
}

}  // namespace trigon
