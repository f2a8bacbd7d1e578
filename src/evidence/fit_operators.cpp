#include "evidence/fit_operators.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "evidence/fit.hpp"
#include "evidence/fit_grid.hpp"

namespace trigon {
namespace {

// Rows that the formulas are fitted on, chosen by their hash; grids take all.
constexpr std::size_t kFormulaRows = 500;

// Of grids: differences between neighbours count so many times the mean number of rows of a node.
constexpr double kStiffness = 0.02;

double log_error(double a, double b) { return std::fabs(std::log(a / b)); }

bool formula_shape(const Sample& s) {
  const Operator& op = s.ops[0];
  // The shapes that models have; the tables also hold slivers a hundred times longer than wide.
  if (op.kind == OperatorKind::gemm) return op.n >= 256 && op.k >= 512 && op.k <= 32768;
  return true;
}

struct FamilyFit {
  std::vector<DeviceModel> devices;  // of the whole bench; only members are used
  std::vector<const Sample*> samples;

  std::vector<const Sample*> of(const std::string& block) const {
    std::vector<const Sample*> all, out;
    for (const Sample* s : samples)
      if (s->block == block && formula_shape(*s)) all.push_back(s);
    const std::uint64_t every = std::max<std::size_t>(1, all.size() / kFormulaRows);
    for (const Sample* s : all)
      if ((s->hash >> 20) % every == 0) out.push_back(s);
    return out;
  }

  // Returns the number of rows; leaves `trial` as it is without any.
  std::size_t fit(const std::string& block, OperatorCoefficients& trial,
                  const std::vector<FitParameter>& parameters, int iterations) {
    const auto rows = of(block);
    if (rows.size() < 20) return 0;
    auto loss = [&] {
      for (DeviceModel& d : devices) d.operators = trial;
      double sum = 0;
      for (const Sample* s : rows)
        sum += log_error(sample_seconds(devices[s->device], *s), s->seconds);
      return sum / static_cast<double>(rows.size());
    };
    minimise(parameters, loss, iterations, 20240607);
    for (DeviceModel& d : devices) d.operators = trial;
    return rows.size();
  }
};

CoefficientBlock matrix_block(const std::string& name, const MatrixCoefficients& m,
                              std::size_t rows) {
  CoefficientBlock b{name,
                     {{"ceiling", m.ceiling},
                      {"k_half", m.k_half},
                      {"wave_exponent", m.wave_exponent},
                      {"sharpness", m.sharpness},
                      {"latency_seconds", m.latency_seconds}},
                     rows};
  if (m.widened_per_second > 0) b.values.push_back({"widened_per_second", m.widened_per_second});
  if (m.floor_seconds > 0) b.values.push_back({"floor_seconds", m.floor_seconds});
  return b;
}

// The formulas of the devices that `fit` holds.
CoefficientSheet fit_formulas(const std::string& id, FamilyFit& fit, OperatorCoefficients& c) {
  CoefficientSheet sheet;
  sheet.id = "operators/" + id;
  auto at = [&](MatrixPath p) -> MatrixCoefficients& {
    return c.matrix[static_cast<std::size_t>(p)];
  };
  auto matrix_parameters = [&](MatrixPath p) {
    MatrixCoefficients& m = at(p);
    return std::vector<FitParameter>{{&m.ceiling, 0.05, 1.0},
                                     {&m.k_half, 1, 4000},
                                     {&m.wave_exponent, 0.01, 1},
                                     {&m.sharpness, 1, 10},
                                     {&m.latency_seconds, 1e-8, 1e-4}};
  };
  auto half = matrix_parameters(MatrixPath::half);
  half.push_back({&c.stream.ceiling, 0.2, 1.0});
  half.push_back({&c.stream.half_bytes, 1, 4e6});
  half.push_back({&c.stream.warm_speedup, 1, 6});
  half.push_back({&c.launch_seconds, 5e-7, 2e-5});
  if (const auto n = fit.fit("half", c, half, 1600)) {
    sheet.blocks.push_back(matrix_block("half", at(MatrixPath::half), n));
    sheet.blocks.push_back({"stream",
                            {{"ceiling", c.stream.ceiling},
                             {"half_bytes", c.stream.half_bytes},
                             {"warm_speedup", c.stream.warm_speedup}},
                            n});
    sheet.blocks.push_back({"launch", {{"seconds", c.launch_seconds}}, n});
  }
  for (MatrixPath p : {MatrixPath::fp8, MatrixPath::fp8_block, MatrixPath::fp4, MatrixPath::int8,
                       MatrixPath::int8_only, MatrixPath::int4_only, MatrixPath::fp32}) {
    auto parameters = matrix_parameters(p);
    if (p == MatrixPath::fp8_block) {
      // Timed with the host's launches, which say nothing about the kernel's own latency.
      at(p).latency_seconds = 1e-6;
      parameters.back() = {&at(p).latency_seconds, 1e-8, 3e-6};
      at(p).floor_seconds = 5e-5;
      parameters.push_back({&at(p).floor_seconds, 1e-6, 1e-3});
    }
    if (p == MatrixPath::int8_only || p == MatrixPath::int4_only) {
      at(p).widened_per_second = 1e12;
      parameters.push_back({&at(p).widened_per_second, 1e10, 1e14});
    }
    const char* name = matrix_path_name(p);
    if (const auto n = fit.fit(name, c, parameters, 900))
      sheet.blocks.push_back(matrix_block(name, at(p), n));
  }
  ElementwiseCoefficients& e = c.elementwise;
  e = {0.8, 1e4, 1e-6, 0};
  if (const auto n = fit.fit(
          "elementwise", c,
          {{&e.ceiling, 0.2, 1}, {&e.half_bytes, 1, 4e6}, {&e.timed_seconds, 1e-8, 5e-5}}, 400))
    sheet.blocks.push_back(
        {"elementwise",
         {{"ceiling", e.ceiling}, {"half_bytes", e.half_bytes}, {"timed_seconds", e.timed_seconds}},
         n});
  else
    e = {};
  AttentionCoefficients& a = c.attention;
  const auto decode = fit.fit("attention_decode", c,
                              {{&a.decode_ceiling, 0.05, 1},
                               {&a.half_bytes, 1, 5e7},
                               {&a.warm_rate, 1e8, 1e12},
                               {&a.decode_latency_seconds, 1e-7, 5e-5}},
                              500);
  const auto prefill = fit.fit("attention_prefill", c,
                               {{&a.prefill_ceiling, 0.02, 1},
                                {&a.keys_half, 1, 20000},
                                {&a.prefill_latency_seconds, 1e-7, 1e-4}},
                               500);
  if (prefill > 0 && decode > 0)
    sheet.blocks.push_back({"attention",
                            {{"prefill_ceiling", a.prefill_ceiling},
                             {"keys_half", a.keys_half},
                             {"decode_ceiling", a.decode_ceiling},
                             {"half_bytes", a.half_bytes},
                             {"warm_rate", a.warm_rate},
                             {"prefill_latency_seconds", a.prefill_latency_seconds},
                             {"decode_latency_seconds", a.decode_latency_seconds}},
                            prefill + decode});
  if (const auto n =
          fit.fit("grouped", c,
                  {{&c.grouped_factor, 0.1, 1.5}, {&c.grouped_latency_seconds, 1e-6, 2e-4}}, 400))
    sheet.blocks.push_back(
        {"grouped",
         {{"factor", c.grouped_factor}, {"latency_seconds", c.grouped_latency_seconds}},
         n});
  return sheet;
}

// Grids of the rows that `of` chooses, over formulas already in the devices of `fit`.
CoefficientSheet fit_grids(const std::string& id, const FamilyFit& fit,
                           const std::function<bool(const Sample&)>& of, double smoothness) {
  CoefficientSheet sheet;
  sheet.id = "grids/" + id;
  std::array<std::vector<GridRow>, kGridKinds> rows;
  std::array<UtilisationGrid, kGridKinds> grids;
  for (std::size_t k = 0; k < kGridKinds; ++k)
    grids[k] = UtilisationGrid(grid_axes(static_cast<GridKind>(k)));
  std::array<GridCorner, kGridCorners> c;
  for (const Sample* s : fit.samples) {
    if (!of(*s)) continue;
    const DeviceModel& d = fit.devices[s->device];
    GridRow row;
    double total = 0;
    GridKind kind = GridKind::none;
    for (const Operator& op : s->ops) {
      const GridPlace p = grid_place(d, op);
      if (p.kind == GridKind::none) break;
      kind = p.kind;
      const double t = operator_time(d, op).seconds;
      total += t;
      const std::size_t n = grids[static_cast<std::size_t>(kind)].corners(p.at, c);
      for (std::size_t i = 0; i < n; ++i) row.corners.push_back({c[i].node, c[i].weight * t});
    }
    if (kind == GridKind::none || !(total > 0)) continue;
    for (GridCorner& corner : row.corners) corner.weight /= total;
    row.value = std::log(s->seconds / total);
    rows[static_cast<std::size_t>(kind)].push_back(std::move(row));
  }
  for (std::size_t k = 0; k < kGridKinds; ++k) {
    // As stiff as a share of the rows that a node has.
    const double stiff = smoothness * static_cast<double>(rows[k].size()) /
                         static_cast<double>(grids[k].values().size());
    fit_grid(grids[k], rows[k], {{stiff, stiff, stiff, stiff}, 0.15});
    if (!grids[k].empty())
      sheet.grids.push_back(
          {grid_kind_name(static_cast<GridKind>(k)), std::move(grids[k]), rows[k].size()});
  }
  return sheet;
}

}  // namespace

DeviceModel bare_device(const Accelerator& a) {
  DeviceModel d;
  d.accelerator = &a;
  fill_units(d, a);
  for (MatrixCoefficients& m : d.operators.matrix) m = {0.8, 150, 0.5, 3, 1e-7, 0, 0, 0};
  d.operators.stream = {0.8, 1e5, 0, 1.5};
  d.operators.attention = {0.5, 500, 1e-5, 0.8, 1e5, 5e-6, 0, 2e10};
  d.operators.grouped_latency_seconds = 2e-5;
  d.operators.launch_seconds = 3e-6;
  return d;
}

double sample_seconds(const DeviceModel& d, const Sample& s) {
  double t = 0;
  for (const Operator& op : s.ops) t += operator_time(d, op).seconds;
  return t;
}

std::string sample_block(const DeviceModel& d, const Sample& s) {
  const GridPlace p = grid_place(d, s.ops[0]);
  return p.kind == GridKind::none ? s.block : grid_kind_name(p.kind);
}

std::vector<CoefficientSheet> fit_operators(const Bench& bench, const KeepSample& keep,
                                            const std::string& only) {
  std::vector<CoefficientSheet> out;
  std::map<std::string, std::vector<std::size_t>> families;
  for (std::size_t i = 0; i < bench.devices.size(); ++i)
    families[bench.devices[i].accelerator->family].push_back(i);
  auto fit_of = [&](const std::vector<std::size_t>& members) {
    FamilyFit f;
    f.devices = bench.devices;
    for (const Sample& s : bench.samples)
      if (std::find(members.begin(), members.end(), s.device) != members.end() && keep(s))
        f.samples.push_back(&s);
    return f;
  };
  auto source_of = [&](const std::vector<std::size_t>& members) {
    std::string text;
    for (std::size_t i : members)
      if (auto it = bench.files.find(i); it != bench.files.end())
        for (const std::string& f : it->second) text += (text.empty() ? "" : "; ") + f;
    return text.empty() ? std::string("products without matrix units by device name") : text;
  };
  std::vector<std::size_t> everything(bench.devices.size());
  for (std::size_t i = 0; i < everything.size(); ++i) everything[i] = i;
  FamilyFit all = fit_of(everything);
  OperatorCoefficients pooled = bench.devices[0].operators;
  CoefficientSheet any = fit_formulas("any", all, pooled);
  any.source = source_of(everything);
  out.push_back(std::move(any));
  std::set<std::string> vendors;
  for (const DeviceModel& d : bench.devices) vendors.insert(d.accelerator->vendor);
  for (const std::string& vendor : vendors) {
    CoefficientSheet g = fit_grids(
        vendor, all,
        [&](const Sample& s) { return bench.devices[s.device].accelerator->vendor == vendor; },
        10 * kStiffness);
    g.source = source_of(everything);
    out.push_back(std::move(g));
  }
  for (const auto& [family, members] : families) {
    if (!only.empty() && family != only) continue;
    FamilyFit f = fit_of(members);
    if (f.samples.empty()) continue;
    OperatorCoefficients c = pooled;
    CoefficientSheet formulas = fit_formulas(family, f, c);
    formulas.source = source_of(members);
    if (formulas.blocks.empty()) continue;
    out.push_back(std::move(formulas));
    CoefficientSheet g = fit_grids(
        family, f, [](const Sample&) { return true; }, kStiffness);
    g.source = source_of(members);
    out.push_back(std::move(g));
    // Devices of their own only where a family has several that were timed.
    std::map<std::string, std::set<std::size_t>> timed;
    for (const Sample* x : f.samples)
      timed[sample_block(bench.devices[x->device], *x)].insert(x->device);
    for (std::size_t i : members) {
      CoefficientSheet own = fit_grids(
          bench.devices[i].accelerator->id, f,
          [&](const Sample& x) {
            return x.device == i && timed.at(sample_block(bench.devices[i], x)).size() > 1;
          },
          kStiffness);
      own.source = source_of({i});
      if (!own.grids.empty()) out.push_back(std::move(own));
    }
  }
  return out;
}

}  // namespace trigon
