#include "cost/utilisation_grid.hpp"

#include <algorithm>
#include <cmath>

#include "cost/device_model.hpp"

namespace trigon {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
// Two digits of base 64 hold -4 to 4 in steps of 1/512.
constexpr double kScale = 512;
constexpr int kZero = 2048;

constexpr const char* kKindNames[] = {"gemm.fp32",
                                      "gemm.half",
                                      "gemm.fp8",
                                      "gemm.fp8_block",
                                      "gemm.fp4",
                                      "gemm.int8",
                                      "gemm.int8_only",
                                      "gemm.int4_only",
                                      "grouped.half",
                                      "grouped.fp8",
                                      "grouped.fp8_block",
                                      "grouped.int4_only",
                                      "prefill",
                                      "prefill.fp8_cache",
                                      "decode",
                                      "decode.fp8_cache",
                                      "latent.prefill",
                                      "latent.decode",
                                      "prefill.window",
                                      "prefill.window_fp8_cache",
                                      "decode.window",
                                      "decode.window_fp8_cache"};
static_assert(std::size(kKindNames) == kGridKinds);
constexpr const char* kLinkNames[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                      "one_shot"};
static_assert(std::size(kLinkNames) == kLinkGridKinds);

double log2_of(double v) { return std::log2(std::max(v, 1e-3)); }

std::size_t nodes_of(const std::array<GridAxis, kGridAxes>& axes) {
  std::size_t n = 1;
  for (const GridAxis& a : axes) n *= static_cast<std::size_t>(a.count);
  return n;
}

const Fact* in_group(const FactGroup& g, const char* key) { return find_fact(g.facts, key); }

template <class T>
T value_of(const FactGroup& g, const char* key) {
  const Fact* f = in_group(g, key);
  const T* v = f ? std::get_if<T>(&f->value) : nullptr;
  return v ? *v : T{};
}

UtilisationGrid read_grid(const FactGroup& g, const std::array<GridAxis, kGridAxes>& axes) {
  UtilisationGrid grid(axes);
  if (!grid.read_rows(value_of<std::vector<std::string>>(g, "rows"))) return {};
  grid.error = value_of<double>(g, "error");
  return grid;
}

}  // namespace

const char* grid_kind_name(GridKind k) { return kKindNames[static_cast<std::size_t>(k)]; }
const char* link_grid_name(LinkGridKind k) { return kLinkNames[static_cast<std::size_t>(k)]; }

UtilisationGrid::UtilisationGrid(const std::array<GridAxis, kGridAxes>& axes)
    : axes_(axes), values_(nodes_of(axes), 0.0F) {}

std::size_t UtilisationGrid::corners(const GridPoint& x,
                                     std::array<GridCorner, kGridCorners>& out) const {
  std::size_t n = 1;
  out[0] = {0, 1};
  for (std::size_t i = 0; i < kGridAxes; ++i) {
    const GridAxis& a = axes_[i];
    const double last = a.count - 1;
    const double at = std::clamp((x[i] - a.first) / a.step, 0.0, last);
    const auto low = std::min(static_cast<std::size_t>(at), static_cast<std::size_t>(last));
    const double share = at - static_cast<double>(low);
    const auto stride = static_cast<std::size_t>(a.count);
    const std::size_t known = n;
    for (std::size_t c = 0; c < known; ++c) {
      const GridCorner base = out[c];
      out[c] = {base.node * stride + low, base.weight * (1 - share)};
      if (share > 0) out[n++] = {base.node * stride + low + 1, base.weight * share};
    }
  }
  return n;
}

double UtilisationGrid::at(const GridPoint& x) const {
  std::array<GridCorner, kGridCorners> c;
  const std::size_t n = corners(x, c);
  double v = 0;
  for (std::size_t i = 0; i < n; ++i) v += c[i].weight * static_cast<double>(values_[c[i].node]);
  return v;
}

std::vector<std::string> UtilisationGrid::rows() const {
  std::vector<std::string> out;
  const std::size_t width = values_.size() / static_cast<std::size_t>(axes_[0].count);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (i % width == 0) out.emplace_back();
    const double v = std::clamp(static_cast<double>(values_[i]), -3.9, 3.9);
    const auto code = static_cast<std::size_t>(std::lround(v * kScale) + kZero);
    out.back() += kDigits[code / 64];
    out.back() += kDigits[code % 64];
  }
  return out;
}

bool UtilisationGrid::read_rows(const std::vector<std::string>& rows) {
  std::array<int, 256> digit{};
  digit.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    digit[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
  std::size_t at = 0;
  for (const std::string& row : rows)
    for (std::size_t i = 0; i + 1 < row.size(); i += 2) {
      const int high = digit[static_cast<unsigned char>(row[i])];
      const int low = digit[static_cast<unsigned char>(row[i + 1])];
      if (high < 0 || low < 0 || at >= values_.size()) return false;
      values_[at++] = static_cast<float>((high * 64 + low - kZero) / kScale);
    }
  return at == values_.size();
}

// Axes are logarithms to base 2 unless said.
std::array<GridAxis, kGridAxes> grid_axes(GridKind k) {
  switch (k) {
    case GridKind::grouped_half:
    case GridKind::grouped_fp8:
    case GridKind::grouped_fp8_block:
    case GridKind::grouped_int4_only:
      // Rows of one group, groups, elements of one matrix, skew of the routing (plain).
      return {GridAxis{-1, 1, 14}, {0, 1, 10}, {18, 1, 11}, {0, 1, 2}};
    case GridKind::prefill:
    case GridKind::prefill_fp8_cache:
      // Queries of a sequence, sequences x heads, heads that share keys, head dimension.
      return {GridAxis{4, 1, 11}, {0, 1, 13}, {0, 1, 6}, {6, 1, 3}};
    case GridKind::latent_prefill:
      return {GridAxis{4, 1, 12}, {0, 1, 15}, {}, {}};
    case GridKind::decode:
    case GridKind::decode_fp8_cache:
      // Keys, sequences x key heads, heads that share keys, head dimension.
      return {GridAxis{4, 1, 14}, {0, 1, 14}, {0, 1, 6}, {6, 1, 3}};
    case GridKind::prefill_window:
    case GridKind::prefill_window_fp8_cache:
      // Queries of a sequence, sequences x heads, the window, head dimension.
      return {GridAxis{7, 1, 8}, {0, 1, 13}, {7, 1, 7}, {6, 1, 3}};
    case GridKind::decode_window:
    case GridKind::decode_window_fp8_cache:
      // The window, sequences x key heads, heads that share keys, head dimension.
      return {GridAxis{7, 1, 7}, {0, 1, 14}, {0, 1, 6}, {6, 1, 3}};
    case GridKind::latent_decode:
      // Keys, sequences, heads.
      return {GridAxis{4, 1, 14}, {0, 1, 11}, {0, 1, 8}, {}};
    default:
      // Rows, columns and the reduction.
      return {GridAxis{0, 1, 15}, {8, 1, 9}, {8, 1, 9}, {}};
  }
}

std::array<GridAxis, kGridAxes> link_grid_axes() { return {GridAxis{9, 1, 23}, {1, 1, 3}, {}, {}}; }

namespace {

// The grid of kernels that see a window; none where a device's tables have only the plain ones.
GridKind windowed(const DeviceModel& d, bool narrow, bool one_query) {
  const GridKind kind =
      one_query ? (narrow ? GridKind::decode_window_fp8_cache : GridKind::decode_window)
                : (narrow ? GridKind::prefill_window_fp8_cache : GridKind::prefill_window);
  const auto& grids = d.operators.grids;
  return grids && grids->of[static_cast<std::size_t>(kind)].empty() ? GridKind::none : kind;
}

}  // namespace

GridPlace grid_place(const DeviceModel& d, const Operator& op) {
  GridPlace p;
  const bool grouped = op.kind == OperatorKind::grouped_gemm;
  if (grouped || op.kind == OperatorKind::gemm) {
    switch (matrix_path(d, op)) {
      case MatrixPath::fp32:
        p.kind = grouped ? GridKind::none : GridKind::gemm_fp32;
        break;
      case MatrixPath::half:
        // Formats with kernels of their own (GGUF) were not timed.
        p.kind = info(op.weights).gguf ? GridKind::none
                 : grouped             ? GridKind::grouped_half
                                       : GridKind::gemm_half;
        break;
      case MatrixPath::fp8:
        p.kind = grouped ? GridKind::grouped_fp8 : GridKind::gemm_fp8;
        break;
      case MatrixPath::fp8_block:
        p.kind = grouped ? GridKind::grouped_fp8_block : GridKind::gemm_fp8_block;
        break;
      case MatrixPath::fp4:
        p.kind = grouped ? GridKind::none : GridKind::gemm_fp4;
        break;
      case MatrixPath::int8:
        p.kind = grouped ? GridKind::none : GridKind::gemm_int8;
        break;
      case MatrixPath::int8_only:
        p.kind = grouped ? GridKind::none : GridKind::gemm_int8_only;
        break;
      case MatrixPath::int4_only:
        p.kind = grouped ? GridKind::grouped_int4_only : GridKind::gemm_int4_only;
        break;
      default:
        break;
    }
    if (grouped)
      p.at = {log2_of(op.m / std::max(op.groups, 1.0)), log2_of(op.groups), log2_of(op.n * op.k),
              std::min(op.routing_skew, 1.0)};
    else
      p.at = {log2_of(op.m / std::max(op.groups, 1.0)), log2_of(op.n), log2_of(op.k), 0};
    return p;
  }
  if (op.kind != OperatorKind::attention) return p;
  const bool narrow = op.weights != Format::f32 && bits_per_element(op.weights) < 12;
  const bool one_query = op.query_tokens < 2;
  // A latent of 512 values and 64 rotated ones that all heads share (arXiv:2405.04434).
  if (op.n <= 1 && op.k > 512) {
    p.kind = one_query ? GridKind::latent_decode : GridKind::none;
    p.at = {log2_of(op.key_tokens), log2_of(op.sequences), log2_of(op.m), 0};
  } else if (op.window > 0 && !one_query && windowed(d, narrow, one_query) != GridKind::none) {
    p.kind = windowed(d, narrow, one_query);
    p.at = {log2_of(op.query_tokens), log2_of(op.sequences * op.m), log2_of(op.window),
            log2_of(op.k)};
  } else if (one_query) {
    const GridKind own = op.window > 0 ? windowed(d, narrow, one_query) : GridKind::none;
    p.kind = own != GridKind::none ? own : narrow ? GridKind::decode_fp8_cache : GridKind::decode;
    p.at = {log2_of(op.key_tokens), log2_of(op.sequences * op.n), log2_of(op.group_size),
            log2_of(op.k)};
  } else {
    // Keys of 128 plain and 64 rotated values for every head: the expanded latent.
    const bool latent = op.k > 160 && op.k < 224 && op.group_size <= 1;
    p.kind = latent   ? GridKind::latent_prefill
             : narrow ? GridKind::prefill_fp8_cache
                      : GridKind::prefill;
    p.at = {log2_of(op.query_tokens), log2_of(op.sequences * op.m),
            latent ? 0 : log2_of(op.group_size), latent ? 0 : log2_of(op.k)};
  }
  return p;
}

OperatorGrids read_operator_grids(const FactSheet& sheet) {
  OperatorGrids out;
  for (const FactGroup& g : sheet.groups) {
    if (g.name != "grid") continue;
    const auto name = value_of<std::string>(g, "operator");
    for (std::size_t k = 0; k < kGridKinds; ++k)
      if (name == kKindNames[k]) out.of[k] = read_grid(g, grid_axes(static_cast<GridKind>(k)));
  }
  return out;
}

LinkGrids read_link_grids(const FactSheet& sheet) {
  LinkGrids out;
  for (const FactGroup& g : sheet.groups) {
    if (g.name != "grid") continue;
    const auto name = value_of<std::string>(g, "operator");
    for (std::size_t k = 0; k < kLinkGridKinds; ++k)
      if (name == kLinkNames[k]) out.of[k] = read_grid(g, link_grid_axes());
  }
  return out;
}

}  // namespace trigon
