#include <limits>

#include "step/evaluate_parts.hpp"
#include "step/items.hpp"

namespace trigon {
namespace {

template <class Recorder>
void evaluate_memory(const Tables& t, const Plan& plan, Evaluation& e, Recorder& recorder) {
  FullestRank fullest = t.memory.fullest(plan);
  e.memory = fullest.memory;
  if constexpr (Recorder::on) e.memory = t.memory.evaluate(plan, fullest.stage, recorder);
  double used = e.memory.total();
  double budget = t.memory.budget_bytes(plan, e.memory).value;
  e[Metric::memory_bytes] = used;
  e[Metric::usable_bytes] = budget;
  e[Metric::headroom_bytes] = budget - used;
  e.fits = used <= budget;
}

}  // namespace

template <class Recorder>
Evaluation evaluate(const Tables& t, const Plan& plan, Recorder& recorder) {
  Evaluation e;
  e.values.fill(std::numeric_limits<double>::quiet_NaN());
  if (auto serve = std::get_if<Serve>(&t.job)) {
    // How many sequences are in flight decides the memory, so the load comes first.
    Plan loaded = plan;
    if (!t.whole_items())
      evaluate_serve(t, *serve, loaded, e, recorder);
    else
      evaluate_item_serve(t, *serve, loaded, e, recorder);
    e.sequences_held = loaded.micro_batch;
    evaluate_memory(t, loaded, e, recorder);
  } else if (auto batch = std::get_if<Batch>(&t.job)) {
    if (!t.whole_items())
      evaluate_batch(t, *batch, plan, e, recorder);
    else
      evaluate_item_batch(t, *batch, plan, e, recorder);
    evaluate_memory(t, plan, e, recorder);
  } else {
    evaluate_train(t, plan, e, recorder);
    evaluate_memory(t, plan, e, recorder);
  }
  return e;
}

Evaluation evaluate_time(const Tables& t, const Plan& plan) {
  Evaluation e;
  e.values.fill(std::numeric_limits<double>::quiet_NaN());
  NoRecord quiet;
  evaluate_train(t, plan, e, quiet);
  return e;
}

template Evaluation evaluate<NoRecord>(const Tables&, const Plan&, NoRecord&);
template Evaluation evaluate<Record>(const Tables&, const Plan&, Record&);

}  // namespace trigon
