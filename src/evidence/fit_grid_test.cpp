#include "evidence/fit_grid.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace trigon {
namespace {

constexpr std::array<GridAxis, kGridAxes> kAxes = {GridAxis{0, 1, 5}, {0, 1, 5}, {}, {}};
constexpr GridFit kFit{{0.05, 0.05, 0, 0}, 0.15};

GridRow row(const UtilisationGrid& g, double x, double y, double value) {
  std::array<GridCorner, kGridCorners> c;
  const std::size_t n = g.corners({x, y, 0, 0}, c);
  GridRow r;
  r.corners.assign(c.begin(), c.begin() + static_cast<std::ptrdiff_t>(n));
  r.value = value;
  return r;
}

std::vector<GridRow> plane(const UtilisationGrid& g) {
  std::vector<GridRow> rows;
  for (double x = 0; x <= 4; x += 0.25)
    for (double y = 0; y <= 4; y += 0.25) rows.push_back(row(g, x, y, 0.1 * x - 0.05 * y));
  return rows;
}

TEST(FitGrid, FindsASlope) {
  UtilisationGrid g(kAxes);
  fit_grid(g, plane(g), kFit);
  for (double x : {0.3, 2.5, 3.9})
    for (double y : {0.1, 1.7, 4.0}) EXPECT_NEAR(g.at({x, y, 0, 0}), 0.1 * x - 0.05 * y, 0.01);
}

TEST(FitGrid, OneStrayRowIsNotLookedUp) {
  UtilisationGrid g(kAxes);
  auto rows = plane(g);
  rows.push_back(row(g, 2, 2, 3.0));
  fit_grid(g, rows, kFit);
  EXPECT_NEAR(g.at({2, 2, 0, 0}), 0.1, 0.03);
}

TEST(FitGrid, NodesWithoutRowsContinueTheirNeighbours) {
  UtilisationGrid g(kAxes);
  std::vector<GridRow> rows;
  for (int i = 0; i < 40; ++i) rows.push_back(row(g, 0.025 * i, 0.1 * i, 0.5));
  fit_grid(g, rows, kFit);
  EXPECT_NEAR(g.at({4, 4, 0, 0}), 0.5, 0.02);
}

TEST(FitGrid, AFewRowsMakeNoGrid) {
  UtilisationGrid g(kAxes);
  fit_grid(g, {row(g, 1, 1, 0.2)}, kFit);
  EXPECT_TRUE(g.empty());
}

}  // namespace
}  // namespace trigon
