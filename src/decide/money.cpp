#include <algorithm>
#include <cmath>

#include "decide/report.hpp"

namespace trigon {

Money money_of(const Catalogues& all, const Cluster& cluster, Payment payment,
               const std::string& as_of) {
  Money m;
  const Accelerator& a = *cluster.accelerator;
  double cards = cluster.count();
  auto scaled = [&](double v, double low, double high, Basis b) {
    return Estimate<double>{v * cards, low * cards, high * cards, b};
  };
  std::optional<Estimate<double>> rent, own;
  if (auto q = all.prices.rent(a, PriceKind::on_demand, as_of)) {
    auto hour = [](DollarsPerSecond d) { return d.in_base() * 3600; };
    rent = scaled(hour(q->price.value), hour(q->price.low), hour(q->price.high), q->price.basis);
  }
  if (auto q = all.prices.buy(a, as_of)) {
    m.usd_purchase = scaled(q->price.value.in_base(), q->price.low.in_base(),
                            q->price.high.in_base(), q->price.basis);
    auto defaults = ownership_defaults(all.facts);
    if (defaults && a.board_power) {
      auto hourly = [&](Dollars price) {
        return hourly_cost_of_ownership({price, defaults->service_years, *a.board_power,
                                         defaults->pue, defaults->per_kilowatt_hour, 1})
                   .in_base() *
               3600;
      };
      own = scaled(hourly(q->price.value), hourly(q->price.low), hourly(q->price.high),
                   Basis::analytic);
    }
  }
  // Unless buying is asked for, an hour costs what renting it does: the amortised hour of a card
  // that works day and night for years is no price of a job that lasts a week.
  m.way = payment == Payment::buy ? Payment::buy : Payment::rent;
  m.usd_per_hour = m.way == Payment::buy ? own : rent;
  return m;
}

void fill_money(PlanReport& r, const Setup& s, const Money& money) {
  auto at = [&](Metric m) -> std::optional<Estimate<double>>& {
    return r.metrics[static_cast<std::size_t>(m)];
  };
  double cards = r.cluster.count();
  if (auto p = r.cluster.accelerator->board_power) {
    double watts = p->in_base() * cards;
    if (r.cluster.card.power_limit) watts = r.cluster.card.power_limit->in_base() * cards;
    // The boards' limit: what they draw at most. Idle draws are not known well enough to say less.
    at(Metric::power_watts) = Estimate<double>{watts, 0, watts, Basis::bound};
  }
  std::optional<Estimate<double>> lasts;
  if (at(Metric::time_to_train_seconds)) lasts = at(Metric::time_to_train_seconds);
  if (at(Metric::job_seconds)) lasts = at(Metric::job_seconds);
  if (lasts && at(Metric::power_watts)) {
    double watts = at(Metric::power_watts)->value;
    at(Metric::energy_joules) =
        Estimate<double>{watts * lasts->value, 0, watts * lasts->high, Basis::bound};
  }
  at(Metric::usd_purchase) = money.usd_purchase;
  at(Metric::usd_per_hour) = money.usd_per_hour;
  if (!money.usd_per_hour) return;
  const Estimate<double>& hour = *money.usd_per_hour;
  auto times = [&](const Estimate<double>& e, double k) {
    // Price and time are independent: their ranges add in quadrature as ratios.
    double up = std::hypot(std::log(std::max(1.0, e.high / e.value)),
                           std::log(std::max(1.0, hour.high / hour.value)));
    double down = std::hypot(std::log(std::max(1.0, e.value / std::max(e.low, 1e-300))),
                             std::log(std::max(1.0, hour.value / std::max(hour.low, 1e-300))));
    double v = e.value * hour.value * k;
    return Estimate<double>{v, v * std::exp(-down), v * std::exp(up), worse(e.basis, hour.basis)};
  };
  if (lasts) {
    at(Metric::usd_total) = times(*lasts, 1 / 3600.0);
  } else if (!s.training) {
    const double month = kHoursOfAMonth;
    at(Metric::usd_total) =
        Estimate<double>{hour.value * month, hour.low * month, hour.high * month, hour.basis};
  }
  if (auto rate = at(Metric::requests_per_second); !s.stack && rate && rate->value > 0) {
    Estimate<double> seconds_per_item{1 / rate->value, 1 / std::max(rate->high, 1e-300),
                                      1 / std::max(rate->low, 1e-300), rate->basis};
    at(Metric::usd_per_million_items) = times(seconds_per_item, 1e6 / 3600);
  }
  Metric speed = s.training ? Metric::train_tokens_per_second : Metric::output_tokens_per_second;
  if (auto rate = at(speed); rate && rate->value > 0) {
    Estimate<double> seconds_per_token{1 / rate->value, 1 / std::max(rate->high, 1e-300),
                                       1 / std::max(rate->low, 1e-300), rate->basis};
    // Checkpoints and failures are paid for too.
    const auto& good = at(Metric::goodput);
    const double wasted = good && good->value > 0 ? 1 / good->value : 1;
    at(Metric::usd_per_million_tokens) = times(seconds_per_token, wasted * 1e6 / 3600);
  }
}

}  // namespace trigon
