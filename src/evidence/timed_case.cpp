#include "evidence/timed_case.hpp"

#include <algorithm>
#include <cmath>

namespace trigon {
namespace {

// Standard deviations of a bell that hold 80 % of it.
constexpr double kRange = 1.2816;

struct Spread {
  double error = 0;
  Basis basis = Basis::analytic;
};

// The error of the nearest measured thing that an operator's time comes from.
Spread spread_of(const DeviceModel& d, const Operator& op) {
  const OperatorCoefficients& c = d.operators;
  if (c.grids) {
    const GridPlace p = grid_place(d, op);
    if (p.kind != GridKind::none)
      if (const auto& g = c.grids->of[static_cast<std::size_t>(p.kind)]; !g.empty())
        return {g.error, c.grid_basis};
  }
  switch (op.kind) {
    case OperatorKind::gemm:
      return {c.matrix[static_cast<std::size_t>(matrix_path(d, op))].error, c.basis};
    case OperatorKind::grouped_gemm:
      return {c.grouped_error, c.basis};
    case OperatorKind::attention:
      return {c.attention.error, c.basis};
    case OperatorKind::elementwise:
      if (c.elementwise.ceiling > 0) return {c.elementwise.error, c.basis};
      [[fallthrough]];
    default:
      return {c.stream.error, c.basis};
  }
}

Spread spread_of(const DeviceModel& d, const TimedCase& c) {
  const int nodes_ranks = d.per_node;
  const LinkCoefficients& link = c.ranks > nodes_ranks && d.inter ? d.inter->c : d.intra.c;
  if (!link.grids || &link != &d.intra.c) return {link.error, link.basis};
  const auto kind = c.kernels == CollectiveKernels::one_shot     ? LinkGridKind::one_shot
                    : c.collective == Collective::all_gather     ? LinkGridKind::all_gather
                    : c.collective == Collective::reduce_scatter ? LinkGridKind::reduce_scatter
                    : c.collective == Collective::all_to_all     ? LinkGridKind::all_to_all
                                                                 : LinkGridKind::all_reduce;
  const auto& g = link.grids->of[static_cast<std::size_t>(kind)];
  return g.empty() ? Spread{link.error, link.basis} : Spread{g.error, link.basis};
}

}  // namespace

double host_launched(const DeviceModel& d, double seconds, double payload,
                     CollectiveKernels kernels) {
  const double launch = d.intra.c.host_launch_seconds;
  if (kernels != CollectiveKernels::one_shot) return seconds + launch;
  const double ceiling = d.operators.stream.ceiling > 0 ? d.operators.stream.ceiling : 1;
  return std::max(launch, seconds + 2 * payload / (d.bandwidth * ceiling));
}

Result<Estimate<double>> predict_timed(const TimedCase& c, const Cluster& hardware) {
  auto d = make_operator_device(hardware, *c.calibration);
  if (!d) return tl::unexpected(d.error());
  double seconds = 0;
  Spread spread{0, Basis::exact};
  if (c.exchange) {
    seconds = exchange_seconds(*d, *c.exchange);
    const ExchangeCoefficients& x = d->intra.c.exchange[static_cast<std::size_t>(c.exchange->kind)];
    spread = {x.error, d->intra.c.basis};
  } else if (c.operators.empty()) {
    seconds = collective_seconds(*d, c.collective, c.payload, c.ranks, 1, c.kernels);
    if (c.host_launched) seconds = host_launched(*d, seconds, c.payload, c.kernels);
    spread = spread_of(*d, c);
  }
  double best = 0;
  for (const Operator& op : c.operators) {
    const double t = operator_time(*d, op).seconds;
    seconds += t;
    best = std::max(best, op.flops / t);
    const Spread s = spread_of(*d, op);
    spread = {std::max(spread.error, s.error), worse(spread.basis, s.basis)};
  }
  double value = seconds;
  if (c.figure == TimedCase::Figure::rate) {
    value = c.best_shape ? best : c.work / seconds;
    if (c.at_peak_of) {
      const double peak = d->unit[static_cast<std::size_t>(*c.at_peak_of)].peak;
      value *= peak / d->unit[static_cast<std::size_t>(MathClass::half)].peak;
    }
  }
  if (c.figure == TimedCase::Figure::bus_bandwidth)
    value = wire_share(c.collective, c.ranks) * c.payload / seconds;
  const double wide = std::exp(kRange * spread.error);
  return Estimate<double>{value, value / wide, value * wide, spread.basis};
}

}  // namespace trigon
