#pragma once
// Fits the operator and link coefficients of src/cost/calibration.hpp and the grids of
// src/cost/utilisation_grid.hpp on measured operator tables (columns as in the tables of the
// evidence folder) and writes them as fact sheets.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "evidence/case.hpp"

namespace trigon {

struct OperatorTables {
  std::string accelerator;  // catalogue id of the device; empty: tables name one in each row
  std::filesystem::path directory;
};

struct CoefficientBlock {
  std::string name;  // "half", "stream", "attention", ...
  std::vector<std::pair<std::string, double>> values;
  std::size_t rows = 0;  // fitted on
};

struct GridBlock {
  std::string name;  // "gemm.half"
  UtilisationGrid grid;
  std::size_t rows = 0;
};

// One sheet to write: data/calibration/<id>.toml, or of a fold.
struct CoefficientSheet {
  std::string id;
  std::string source;  // tables it was fitted on
  std::vector<CoefficientBlock> blocks;
  std::vector<GridBlock> grids;
};

// How far predictions are from rows that the fit has not seen.
struct LeftOutError {
  std::string left_out;  // "shape", "device", "dimensions", "framework"
  std::string group;     // device
  std::string block;     // operator and numbers
  std::size_t rows = 0;
  double median = 0, p90 = 0, bias = 0;
};

struct OperatorCalibration {
  std::vector<CoefficientSheet> shipped;
  std::vector<std::vector<CoefficientSheet>> unseen;  // by fold
  std::vector<LeftOutError> left_out;
};

struct OperatorInputs {
  std::vector<OperatorTables> tables;
  std::vector<Case> collectives;  // rows of measured collectives
  std::vector<Case> products;     // the most that products reached, of devices without tables too
  std::function<const Accelerator*(std::string_view)> accelerator;  // by catalogue id or name
  std::function<Result<Cluster>(const Accelerator&, int ranks)> machine;
};

// Errors in the sheets are of rows that the fit has not seen. Same input, same sheets.
Result<OperatorCalibration> calibrate_operators(const OperatorInputs& inputs);

std::string write_sheet(const CoefficientSheet& sheet, const std::string& kind,
                        const std::string& date, const std::string& command);
std::string write_left_out(const std::vector<LeftOutError>& errors);  // CSV

}  // namespace trigon
