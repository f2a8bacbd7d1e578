// Coefficients of the kernels that exchange tokens between experts' ranks.

#include <algorithm>
#include <cmath>

#include "evidence/fit.hpp"
#include "evidence/fit_operators.hpp"

namespace trigon {
namespace {

// Rows of one kind that are fitted on, chosen by their hash.
constexpr std::size_t kRows = 700;

// What a fit starts from.
constexpr ExchangeCoefficients kStart{0.7, 1e-5, 1e-9, 1e-8, 1e-8, 2e10, 2e10, 1, 3, 0};

std::vector<const ExchangeSample*> thinned(std::vector<const ExchangeSample*> rows) {
  const std::uint64_t every = std::max<std::size_t>(1, rows.size() / kRows);
  std::vector<const ExchangeSample*> out;
  for (const ExchangeSample* s : rows)
    if ((s->hash >> 20) % every == 0) out.push_back(s);
  return out;
}

}  // namespace

void fit_exchange(const Bench& bench, const KeepExchange& keep, const std::string& link,
                  CoefficientSheet& sheet) {
  for (std::size_t k = 0; k < kExchangeKinds; ++k) {
    std::vector<const ExchangeSample*> rows;
    for (const ExchangeSample& s : bench.exchanges)
      if (static_cast<std::size_t>(s.exchange.kind) == k && keep(s) &&
          (link.empty() || bench.machines[s.machine].link == link))
        rows.push_back(&s);
    if (rows.size() < 40) continue;
    const std::size_t count = rows.size();
    rows = thinned(std::move(rows));
    std::vector<Bench::Machine> machines = bench.machines;
    ExchangeCoefficients c = kStart;
    std::vector<FitParameter> p{{&c.ceiling, 0.1, 1.2},
                                {&c.start_seconds, 1e-6, 1e-4},
                                {&c.expert_seconds, 1e-11, 1e-7},
                                {&c.token_seconds, 1e-10, 1e-5},
                                {&c.copy_seconds, 1e-10, 1e-5},
                                {&c.lane_rate, 1e9, 1e13},
                                {&c.rate, 1e9, 1e13},
                                {&c.start_sharpness, 0.8, 6},
                                {&c.sharpness, 1, 12}};
    minimise(
        p,
        [&] {
          for (Bench::Machine& m : machines) m.device.intra.c.exchange[k] = c;
          double sum = 0;
          for (const ExchangeSample* s : rows)
            sum += std::fabs(
                std::log(exchange_seconds(machines[s->machine].device, s->exchange) / s->seconds));
          return sum / static_cast<double>(rows.size());
        },
        2500, 7);
    sheet.blocks.push_back({exchange_name(static_cast<ExchangeKind>(k)),
                            {{"ceiling", c.ceiling},
                             {"start_seconds", c.start_seconds},
                             {"expert_seconds", c.expert_seconds},
                             {"token_seconds", c.token_seconds},
                             {"copy_seconds", c.copy_seconds},
                             {"lane_rate", c.lane_rate},
                             {"rate", c.rate},
                             {"start_sharpness", c.start_sharpness},
                             {"sharpness", c.sharpness}},
                            count});
  }
}

}  // namespace trigon
