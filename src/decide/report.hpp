#pragma once
// From an evaluation to what is shown: ranges, limits, capacity, money.

#include "decide/setup.hpp"

namespace trigon {

// How far the job's limits are missed: 0 when all hold, else the sum of relative excesses. Adds
// one message a violated limit, the worst first, when `out` is given.
double limit_excess(const Setup& s, const Evaluation& e, std::vector<Message>* out = nullptr);

// Its parts that search asks for plan by plan: memory beyond what may be used, time beyond a
// deadline.
double memory_excess(double used, double usable);
// What a host of known memory lacks for what a plan keeps there.
std::optional<Message> host_lacks(const Cluster& cluster, const HostMemory& taken);
double deadline_excess(const std::optional<Seconds>& deadline, double takes);

// Metrics with ranges. Ranges come from evaluating the same plan with each group of coefficients
// moved by its error; groups combine in quadrature.
Result<PlanReport> make_report(const Setup& s, const PlanRequest& fixed, const Plan& plan,
                               Record* recorder);

// Money and power of a plan, from prices on `as_of`; fills the USD and energy metrics.
struct Money {
  std::optional<Estimate<double>> usd_per_hour;  // of the cheaper way, or of the asked one
  std::optional<Estimate<double>> usd_purchase;
  Payment way = Payment::any;
};
Money money_of(const Catalogues& all, const Cluster& cluster, Payment payment,
               const std::string& as_of);
// What a service without end is held to, and its cost shown for: a twelfth of a year.
constexpr double kHoursOfAMonth = 730;
void fill_money(PlanReport& r, const Setup& s, const Money& money);

// The part of memory that takes most.
MemoryTerm largest_term(const RankMemory& m);
const char* memory_term_name(MemoryTerm t);  // "weights", as in JSON

}  // namespace trigon
