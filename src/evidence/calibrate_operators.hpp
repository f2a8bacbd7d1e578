#pragma once
// Fits the operator and link coefficients of src/cost/calibration.hpp on measured operator tables
// (columns as in the tables of the evidence folder) and writes them as fact sheets.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cost/calibration.hpp"

namespace trigon {

struct OperatorTables {
  std::string accelerator;  // catalogue id of the device the tables were measured on
  std::filesystem::path directory;
};

struct CoefficientBlock {
  std::string name;  // "half", "stream", "attention", ...
  std::vector<std::pair<std::string, double>> values;
  std::size_t rows = 0;  // fitted on
};

// One sheet to write: data/calibration/<id>.toml.
struct CoefficientSheet {
  std::string id;
  std::string source;  // tables it was fitted on
  std::vector<CoefficientBlock> blocks;
};

// Half of the rows (by a hash of the row) are fitted, the other half judge: the errors in the
// sheets are of rows that the fit has not seen. Same input, same sheets.
Result<std::vector<CoefficientSheet>> calibrate_operators(
    const std::vector<const Accelerator*>& devices, const std::vector<OperatorTables>& tables);

std::string write_sheet(const CoefficientSheet& sheet, const std::string& date,
                        const std::string& command);

}  // namespace trigon
