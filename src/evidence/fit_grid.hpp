#pragma once
// A grid of logarithms that measured rows leave, smooth where they are few: least squares over the
// corners around each row, with a penalty on differences of neighbours, so that no row stands by
// itself and nodes without rows continue their neighbours.

#include <vector>

#include "cost/utilisation_grid.hpp"

namespace trigon {

// One measured row: the corners of the grid that its operators lie between, with their shares.
struct GridRow {
  std::vector<GridCorner> corners;
  double value = 0;  // ln(measured / formula)
};

struct GridFit {
  std::array<double, kGridAxes> smoothness{};  // of differences along each axis, in rows
  double outlier = 0.15;                       // residuals beyond are counted linearly
};

// Fills `grid`. Fewer rows than `least` leave it empty. Same rows, same grid.
void fit_grid(UtilisationGrid& grid, const std::vector<GridRow>& rows, const GridFit& how,
              std::size_t least = 12);

}  // namespace trigon
