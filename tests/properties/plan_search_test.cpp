// The search over plans of training against nested loops over every dimension. The loops share no
// legality, bound or memory cut with the search: they restate what a plan may be, evaluate each one
// in tables of its own, and compare them by a comparison of their own.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "nested_loops.hpp"

namespace trigon {
namespace {

using test::any_space;
using test::Entry;
using test::Key;
using test::least;
using test::Loops;
using test::Space;

std::string name(const Plan& p) {
  return write_plan(p) + " mb" + std::to_string(p.micro_batch) + " acc" +
         std::to_string(p.accumulation) + " inner" + std::to_string(p.expert_tensor) + " groups" +
         std::to_string(p.optimizer_groups) + ' ' + std::string(schedule_name(p.schedule)) + ' ' +
         std::string(context_exchange_name(p.context_exchange));
}

bool in_family(const Family& f, const Plan& p) {
  const int off =
      (p.offload_optimizer ? 1 : 0) | (p.offload_weights ? 2 : 0) | (p.offload_activations ? 4 : 0);
  switch (f.kind) {
    case FamilyKind::tensor:
      return p.tensor == f.value;
    case FamilyKind::pipeline:
      return f.value == 0   ? p.pipeline == 1
             : f.value == 2 ? p.pipeline > 1 && p.virtual_stages > 1
             : f.value == 3 ? p.pipeline > 1 && p.schedule == Schedule::gpipe
             : f.value == 4
                 ? p.pipeline > 1 && p.schedule == Schedule::zero_bubble
                 : p.pipeline > 1 && p.virtual_stages == 1 && p.schedule == Schedule::one_f_one_b;
    case FamilyKind::context:
      if (p.context == 1) return f.value == 0;
      return f.value == (p.context_exchange == ContextExchange::all_to_all ? 2 : 1);
    case FamilyKind::groups:
      return p.zero > 0 && (p.optimizer_groups > 1) == (f.value == 1);
    case FamilyKind::expert:
      return (p.expert > 1) == (f.value == 1);
    case FamilyKind::data:
      return (p.data > 1) == (f.value == 1);
    case FamilyKind::zero:
      return p.zero == f.value;
    case FamilyKind::recompute:
      return static_cast<int>(p.recompute) == f.value;
    case FamilyKind::offload:
      return off == f.value;
  }
  return false;
}

// The memory or time of plans with an excess is compared as a value: sums of two excesses may
// differ in the last bit, and then so may the order of two plans.
void same(const Entry& expected, const Chosen& found) {
  if (expected.good || name(expected.plan) == name(found.plan)) {
    RC_ASSERT(name(found.plan) == name(expected.plan));
    RC_ASSERT(found.evaluation[Metric::step_seconds] == expected.seconds);
    RC_ASSERT(found.evaluation[Metric::memory_bytes] == expected.bytes);
  }
  RC_ASSERT(std::abs(found.excess - std::get<0>(expected.key)) <=
            2e-7 + 1e-9 * std::abs(found.excess));
}

PlanSearch searched(const Space& x, bool offload, int threads, bool bounds = true) {
  PlanSearchOptions options;
  options.bounds = bounds;
  options.families = options.front = true;
  options.offload = offload;
  options.threads = threads;
  auto found = search_plans(x.setup, x.question.plan, options);
  RC_ASSERT(found.has_value());
  return std::move(*found);
}

std::string bytes_of(const PlanSearch& f, bool counts = true) {
  std::string out;
  auto add = [&](const Chosen& c) {
    out += name(c.plan) + '|';
    out.append(reinterpret_cast<const char*>(c.evaluation.values.data()),
               sizeof c.evaluation.values);
  };
  if (f.best) add(*f.best);
  for (const FamilyResult& r : f.families)
    if (r.best) add(*r.best);
  for (const Chosen& c : f.front) add(c);
  if (!counts) return out;
  return out + std::to_string(f.tally.decided) + ' ' + std::to_string(f.tally.weighed) + ' ' +
         std::to_string(f.tally.whole);
}

struct Seen {
  std::int64_t spaces = 0, plans = 0, fit = 0, binding = 0;
};

void agree(const Space& x, Seen& seen) {
  Loops loops(x);
  std::vector<Entry> all = loops.all(false);
  const Entry* best = least(all);
  const bool allowed = test::between(0, 1) == 1;
  if ((!best || !best->good) && allowed) {
    all = loops.all(true);
    best = least(all);
  }
  const PlanSearch found = searched(x, allowed, 1);
  RC_ASSERT(found.best.has_value() == static_cast<bool>(best));
  if (!best) return;
  ++seen.spaces, seen.plans += static_cast<std::int64_t>(all.size());
  const auto good = std::count_if(all.begin(), all.end(), [](const Entry& e) { return e.good; });
  seen.fit += good > 0, seen.binding += good > 0 && good < static_cast<std::int64_t>(all.size());
  RC_ASSERT(found.tally.decided == static_cast<std::int64_t>(all.size()));
  same(*best, *found.best);
  for (const FamilyResult& r : found.families) {
    const Entry* of = nullptr;
    for (const Entry& e : all)
      if (in_family(r.family, e.plan) && (!of || e.key < of->key)) of = &e;
    RC_ASSERT(r.best.has_value() == static_cast<bool>(of));
    if (of) same(*of, *r.best);
  }
  // The front: what no other plan beats in both.
  std::vector<const Entry*> front;
  for (const Entry& a : all) {
    if (!a.good) continue;
    bool beaten = false;
    for (const Entry& b : all) {
      if (!b.good || &a == &b) continue;
      const bool no_worse = b.seconds <= a.seconds && b.bytes <= a.bytes;
      const bool same_values = b.seconds == a.seconds && b.bytes == a.bytes;
      auto order = [](const Entry& e) {
        Key k = e.key;
        std::get<1>(k) = 0;
        return std::make_tuple(k, std::get<1>(e.key));
      };
      beaten = beaten || (no_worse && (!same_values || order(b) < order(a)));
    }
    if (!beaten) front.push_back(&a);
  }
  std::sort(front.begin(), front.end(),
            [](const Entry* a, const Entry* b) { return a->seconds < b->seconds; });
  RC_ASSERT(found.front.size() == front.size());
  for (std::size_t i = 0; i < front.size(); ++i) {
    RC_ASSERT(name(found.front[i].plan) == name(front[i]->plan));
    RC_ASSERT(found.front[i].evaluation[Metric::memory_bytes] == front[i]->bytes);
  }
}

TEST(PlanSearch, AgreesWithNestedLoops) {
  Seen seen;
  EXPECT_TRUE(rc::check("same best plan, families and front", [&] {
    for (int i = 0; i < 400; ++i)
      if (auto x = any_space()) agree(*x, seen);
  }));
  std::printf("%lld spaces, %lld plans; in %lld something meets the limits, in %lld not all\n",
              static_cast<long long>(seen.spaces), static_cast<long long>(seen.plans),
              static_cast<long long>(seen.fit), static_cast<long long>(seen.binding));
  EXPECT_GT(seen.spaces, 1000);
}

TEST(PlanSearch, SameBytesForAnyNumberOfThreads) {
  EXPECT_TRUE(rc::check("same bytes", [] {
    auto x = any_space();
    RC_PRE(static_cast<bool>(x));
    const std::string once = bytes_of(searched(*x, true, 1));
    for (int threads : {2, 7}) RC_ASSERT(bytes_of(searched(*x, true, threads)) == once);
  }));
  // A space of many blocks.
  const Model model = test::decoder("llama-70b", {80, 8192, 64, 8, 128, 28672, 32000});
  Question q = test::training(model, 1e9, 256);
  auto s = set_up(test::catalogues(), q, test::machine("16x8xh100-sxm-80gb"));
  ASSERT_TRUE(s);
  PlanSearchOptions options;
  options.families = options.front = true;
  std::string once;
  for (int threads : {1, 2, 7}) {
    options.threads = threads;
    auto found = search_plans(*s, q.plan, options);
    ASSERT_TRUE(found && found->best);
    EXPECT_GT(found->tally.decided, 10000);
    const std::string bytes = bytes_of(*found);
    if (once.empty()) once = bytes;
    EXPECT_EQ(bytes, once) << threads;
  }
}

TEST(PlanSearch, SameAnswerWithoutBounds) {
  EXPECT_TRUE(rc::check("same plans and numbers", [] {
    auto x = any_space();
    RC_PRE(static_cast<bool>(x));
    const PlanSearch quick = searched(*x, true, 1), whole = searched(*x, true, 1, false);
    RC_ASSERT(bytes_of(quick, false) == bytes_of(whole, false));
    RC_ASSERT(quick.tally.decided == whole.tally.decided);
    RC_ASSERT(whole.tally.whole == whole.tally.decided);
  }));
}

TEST(PlanSearch, StoppedItSaysSo) {
  const Model model = test::llama31_8b();
  Question q = test::training(model, 1e9, 64);
  auto s = set_up(test::catalogues(), q, test::machine("8xh100-sxm-80gb"));
  ASSERT_TRUE(s);
  std::atomic<bool> stop{true};
  PlanSearchOptions options;
  options.stop = &stop;
  auto found = search_plans(*s, q.plan, options);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->partial);
  EXPECT_FALSE(found->best);
}

}  // namespace
}  // namespace trigon
