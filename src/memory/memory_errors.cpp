#include "memory/memory_errors.hpp"

#include <algorithm>

#include "base/fact_values.hpp"

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
    const MemoryErrors none;
    table[text_of(g, "engine") + "/" + text_of(g, "phase")] = {
        number_of(g, "counted", none.counted), number_of(g, "estimated", none.estimated), true};
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
