#pragma once
// What measured tables add to the formulas of operator and collective times: the logarithm of
// (measured / formula) on a coarse regular grid over the logarithms of an operator's dimensions.
// Utilisation is what is interpolated (ideal time over measured), never a latency: a formula that
// were ideal would leave its inverse on the grid. Outside of the grid the nearest edge holds.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/facts.hpp"
#include "lower/operators.hpp"

namespace trigon {

struct DeviceModel;

constexpr std::size_t kGridAxes = 4;
using GridPoint = std::array<double, kGridAxes>;

struct GridAxis {
  double first = 0, step = 1;
  int count = 1;
};

struct GridCorner {
  std::size_t node = 0;
  double weight = 0;
};
constexpr std::size_t kGridCorners = std::size_t{1} << kGridAxes;

class UtilisationGrid {
 public:
  UtilisationGrid() = default;
  explicit UtilisationGrid(const std::array<GridAxis, kGridAxes>& axes);

  bool empty() const { return values_.empty(); }
  // Multilinear between the nodes.
  double at(const GridPoint& x) const;
  // The nodes around a point and their weights, which add to one; returns how many are not zero.
  std::size_t corners(const GridPoint& x, std::array<GridCorner, kGridCorners>& out) const;

  const std::array<GridAxis, kGridAxes>& axes() const { return axes_; }
  std::vector<float>& values() { return values_; }
  const std::vector<float>& values() const { return values_; }

  double error = 0;  // relative, one standard deviation, of shapes that the fit has not seen

  // Two characters a node, row by row of the first axis.
  std::vector<std::string> rows() const;
  bool read_rows(const std::vector<std::string>& rows);

 private:
  std::array<GridAxis, kGridAxes> axes_{};
  std::vector<float> values_;
};

// Operators that share kernels, and so a grid.
enum class GridKind : std::uint8_t {
  gemm_fp32,
  gemm_half,
  gemm_fp8,
  gemm_fp8_block,
  gemm_fp4,
  gemm_int8,
  gemm_int8_only,  // 8-bit weights widened to 16 bit
  gemm_int4_only,
  grouped_half,
  grouped_fp8,
  grouped_fp8_block,
  grouped_int4_only,
  prefill,
  prefill_fp8_cache,
  decode,
  decode_fp8_cache,
  latent_prefill,
  latent_decode,
  prefill_window,  // queries that see a window of a longer context
  prefill_window_fp8_cache,
  decode_window,
  decode_window_fp8_cache,
  none,
  count_ = none
};
constexpr std::size_t kGridKinds = static_cast<std::size_t>(GridKind::count_);
const char* grid_kind_name(GridKind k);  // "gemm.half", as in the sheets

struct OperatorGrids {
  std::array<UtilisationGrid, kGridKinds> of;
};

// The axes that a kind has.
std::array<GridAxis, kGridAxes> grid_axes(GridKind k);
// The grid of an operator on a device and where it lies on it.
struct GridPlace {
  GridKind kind = GridKind::none;
  GridPoint at{};
};
GridPlace grid_place(const DeviceModel& d, const Operator& op);

// Grids of collectives over one kind of link, by payload and ranks.
enum class LinkGridKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  one_shot,  // the all-reduce kernels that inference engines bring
  count_
};
constexpr std::size_t kLinkGridKinds = static_cast<std::size_t>(LinkGridKind::count_);
const char* link_grid_name(LinkGridKind k);
std::array<GridAxis, kGridAxes> link_grid_axes();
struct LinkGrids {
  std::array<UtilisationGrid, kLinkGridKinds> of;
};

// The groups [[grid]] of a sheet.
OperatorGrids read_operator_grids(const FactSheet& sheet);
LinkGrids read_link_grids(const FactSheet& sheet);

}  // namespace trigon
