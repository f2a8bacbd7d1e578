#pragma once
// Fits engine coefficients on end-to-end measurements, coarse to fine: all engines, one engine,
// its vendors, its device families, and the weight classes of each. A finer fit starts from the
// coarser one and is held to it the more, the fewer rows it has.

#include "evidence/case.hpp"
#include "evidence/csv.hpp"

namespace trigon {

struct EngineFit {
  std::shared_ptr<const EngineTable> shipped;
  std::vector<std::shared_ptr<const EngineTable>> unseen;  // by fold: fitted without it
  std::map<std::string, std::size_t> rows;                 // by key, of the shipped fit
};

// Rows that cannot be predicted, and rows whose evidence says they are doubtful or composed rather
// than timed, are left out. Errors in the tables are of rows unseen by the fit that predicts them.
Result<EngineFit> calibrate_engines(const Catalogues& all, const std::vector<CsvTable>& tables,
                                    const RowNames& names);

// The sheets to write: "engines", and "engines-without-fold-K" of kind "calibration_fold".
std::vector<std::pair<std::string, std::string>> write_engine_sheets(const EngineFit& fit,
                                                                     const std::string& source,
                                                                     const std::string& date,
                                                                     const std::string& command);

}  // namespace trigon
