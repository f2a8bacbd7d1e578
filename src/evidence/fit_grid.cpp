#include "evidence/fit_grid.hpp"

#include <algorithm>
#include <cmath>

namespace trigon {
namespace {

struct System {
  const UtilisationGrid& grid;
  const std::vector<GridRow>& rows;
  const std::vector<double>& weights;
  std::array<double, kGridAxes> smoothness;

  // out = A x of the normal equations.
  void apply(const std::vector<double>& x, std::vector<double>& out) const {
    std::fill(out.begin(), out.end(), 0.0);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      double v = 0;
      for (const GridCorner& c : rows[r].corners) v += c.weight * x[c.node];
      v *= weights[r];
      for (const GridCorner& c : rows[r].corners) out[c.node] += c.weight * v;
    }
    std::size_t stride = x.size();
    for (std::size_t axis = 0; axis < kGridAxes; ++axis) {
      const GridAxis& a = grid.axes()[axis];
      const auto count = static_cast<std::size_t>(a.count);
      const std::size_t block = stride;
      stride /= count;
      for (std::size_t i = 0; i + stride < x.size(); ++i) {
        if (i % block + stride >= block) continue;  // the last of its line
        const double slope = smoothness[axis] * (x[i + stride] - x[i]);
        out[i] -= slope;
        out[i + stride] += slope;
      }
    }
    // What nothing holds stays at the formula.
    const double hold = 1e-3 * *std::max_element(smoothness.begin(), smoothness.end());
    for (std::size_t i = 0; i < x.size(); ++i) out[i] += hold * x[i];
  }
};

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double s = 0;
  for (std::size_t i = 0; i < a.size(); ++i) s += a[i] * b[i];
  return s;
}

void conjugate_gradients(const System& s, const std::vector<double>& b, std::vector<double>& x) {
  std::vector<double> r(b.size()), p, q(b.size());
  s.apply(x, r);
  for (std::size_t i = 0; i < b.size(); ++i) r[i] = b[i] - r[i];
  p = r;
  double rr = dot(r, r);
  const double enough = 1e-7 * std::max(dot(b, b), 1e-12);
  for (int step = 0; step < 40 && rr > enough; ++step) {
    s.apply(p, q);
    const double along = rr / dot(p, q);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += along * p[i], r[i] -= along * q[i];
    const double next = dot(r, r);
    for (std::size_t i = 0; i < x.size(); ++i) p[i] = r[i] + next / rr * p[i];
    rr = next;
  }
}

}  // namespace

void fit_grid(UtilisationGrid& grid, const std::vector<GridRow>& rows, const GridFit& how,
              std::size_t least) {
  if (rows.size() < least) {
    grid = UtilisationGrid();
    return;
  }
  const std::size_t n = grid.values().size();
  std::vector<double> x(n, 0.0), b(n), weights(rows.size(), 1.0);
  for (int round = 0; round < 3; ++round) {
    std::fill(b.begin(), b.end(), 0.0);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (const GridCorner& c : rows[r].corners)
        b[c.node] += c.weight * weights[r] * rows[r].value;
    conjugate_gradients({grid, rows, weights, how.smoothness}, b, x);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      double v = 0;
      for (const GridCorner& c : rows[r].corners) v += c.weight * x[c.node];
      const double off = std::fabs(rows[r].value - v);
      weights[r] = off > how.outlier ? how.outlier / off : 1;
    }
  }
  for (std::size_t i = 0; i < n; ++i) grid.values()[i] = static_cast<float>(x[i]);
}

}  // namespace trigon
