#pragma once
// How far the terms of a rank's memory are from what is measured.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/facts.hpp"
#include "memory/memory.hpp"

namespace trigon {

// What is counted byte by byte from shapes and formats; the rest follows mechanisms.
constexpr bool counted_exactly(MemoryTerm t) {
  switch (t) {
    case MemoryTerm::weights:
    case MemoryTerm::kv_cache:
    case MemoryTerm::gradients:
    case MemoryTerm::master_weights:
    case MemoryTerm::optimizer:
      return true;
    default:
      return false;
  }
}

// Relative errors of both kinds of terms that hold for four of five measurements. Errors of terms
// add up: whatever makes one framework keep more makes it keep more of each.
struct MemoryErrors {
  double counted = 0.002;
  double estimated = 0.25;
  bool validated = false;  // measurements of this engine stand behind them
};

using MemoryTerms = std::uint32_t;  // a bit for each MemoryTerm
constexpr MemoryTerms bit(MemoryTerm t) { return MemoryTerms{1} << static_cast<unsigned>(t); }
inline constexpr MemoryTerms kAllTerms = (MemoryTerms{1} << kMemoryTerms) - 1;

// Sum of some terms and what they may be.
Range range_of(const RankMemory& memory, const MemoryErrors& errors, MemoryTerms terms = kAllTerms);

// By "engine/serve", "engine/train" and "any/...", as sheets of kind "memory_errors" state them.
using MemoryErrorTable = std::map<std::string, MemoryErrors, std::less<>>;
MemoryErrorTable read_memory_errors(const FactSheet& sheet);
std::string memory_error_key(std::string_view engine, bool training);
// The engine's own, those of all engines (not validated), or the defaults above.
MemoryErrors find_memory_errors(const MemoryErrorTable& table, std::string_view engine,
                                bool training);

}  // namespace trigon
