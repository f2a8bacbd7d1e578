#pragma once
// Fits how far memory terms are from measurements, so that ranges hold as often as they say.

#include "evidence/case.hpp"
#include "evidence/csv.hpp"

namespace trigon {

struct MemoryErrorFit {
  MemoryErrorTable shipped;
  std::vector<MemoryErrorTable> unseen;     // by fold: fitted without it
  std::map<std::string, std::size_t> rows;  // by key, of the shipped fit
};

// Rows of the memory schema only. An engine and phase with at least `kOwnRows` rows has errors of
// its own, the others those of all engines: the relative errors within which four of five of its
// rows lie, first of what is counted exactly, then of the rest.
inline constexpr std::size_t kOwnRows = 10;
Result<MemoryErrorFit> calibrate_memory(const Catalogues& all, const std::vector<CsvTable>& tables,
                                        const RowNames& names);

// "memory.toml" and "folds/memory-K.toml", sheets of kind "memory_errors".
std::vector<std::pair<std::string, std::string>> write_memory_sheets(const MemoryErrorFit& fit,
                                                                     const std::string& source,
                                                                     const std::string& date,
                                                                     const std::string& command);

}  // namespace trigon
