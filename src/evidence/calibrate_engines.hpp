#pragma once
// Fits the effects of engines, devices and formats on end-to-end measurements (engine_fit.hpp), and
// judges the fit on what it has not seen: folds of rows, whole devices, whole sources, whole
// families of models.

#include "evidence/case.hpp"
#include "evidence/csv.hpp"

namespace trigon {

// Errors of rows that a fit has not seen, because their fold, their device, their source or the
// family of their model, with its shapes, was left out. Groups are repository x metric, those of at
// least ten rows.
struct LeftOutFigures {
  std::string what;  // "fold", "device", "source", "model_family"
  std::string kind;  // "serve" ...
  std::int64_t rows = 0;
  double median = 0, median_of_groups = 0;
};
constexpr std::size_t kSmallGroupRows = 10;

struct EngineFit {
  std::shared_ptr<const EngineTable> shipped;
  std::vector<std::shared_ptr<const EngineTable>> unseen;  // by fold: fitted without it
  std::vector<LeftOutFigures> figures;
};

// Rows that cannot be predicted, and rows whose evidence says they are doubtful or composed rather
// than timed, are left out. Errors in the tables are of rows unseen by the fit that predicts them.
Result<EngineFit> calibrate_engines(const Catalogues& all, const std::vector<CsvTable>& tables,
                                    const RowNames& names);

// The sheets to write: "engines", "folds/engines-K" of kind "calibration_fold", and the figures.
std::vector<std::pair<std::string, std::string>> write_engine_sheets(const EngineFit& fit,
                                                                     const std::string& source,
                                                                     const std::string& date,
                                                                     const std::string& command);

}  // namespace trigon
