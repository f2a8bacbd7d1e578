#pragma once
// Every plan of a small random space, by nested loops over every dimension. They share no legality,
// bound or memory cut with the search.

#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "decide/plan_search.hpp"
#include "random_questions.hpp"

namespace trigon::test {

// Small models, so that a space of them is enumerated in milliseconds.
struct Space {
  test::Shape shape{};
  Model model;
  Question question;
  Cluster cluster;
  Setup setup;
};

// Null where the question cannot be asked.
inline std::unique_ptr<Space> any_space() {
  auto x = std::make_unique<Space>();
  test::Shape& s = x->shape;
  s.layers = test::between(1, 12);
  s.head_dim = test::one_of<std::int64_t>({64, 128});
  s.kv_heads = test::one_of<std::int64_t>({1, 2, 3, 4, 8});
  s.heads = s.kv_heads * test::one_of<std::int64_t>({1, 2, 3});
  s.hidden = s.heads * 128 * test::one_of<std::int64_t>({1, 4});
  s.ffn = 2 * test::one_of<std::int64_t>({512, 1023, 1536, 8192});
  s.vocabulary = test::one_of<std::int64_t>({1000, 32000, 151936});
  s.tied = test::between(0, 1) == 1;
  if (test::between(0, 2) == 0) {
    s.experts = test::one_of<std::int64_t>({4, 6, 8});
    s.active = 2;
  }
  x->model = test::decoder("any", s);
  Question& q = x->question;
  q.model = &x->model;
  q.job.kind = test::one_of<JobKind>({JobKind::train, JobKind::train, JobKind::finetune});
  q.job.method = test::one_of<TuneMethod>({TuneMethod::full, TuneMethod::lora});
  q.job.tokens = 1e6;
  q.job.sequence = test::one_of<std::int64_t>({64, 500, 2048, 32768});
  q.job.global_batch = test::one_of<std::int64_t>({1, 4, 6, 8, 12});
  if (test::between(0, 2) == 0) q.job.deadline = seconds(test::between(1, 400));
  q.engine = test::one_of<std::string>(
      {"megatron-lm", "megatron-lm", "torchtitan", "deepspeed", "fsdp", "transformers"});
  q.plan.any_schedule = test::between(0, 3) == 0;
  // Whatever is fixed is fixed.
  PlanRequest& p = q.plan;
  auto maybe = [](auto& field, auto values) {
    if (test::between(0, 9) == 0) field = test::one_of(values);
  };
  maybe(p.tensor, std::vector<std::int32_t>{1, 2, 3, 4});
  maybe(p.pipeline, std::vector<std::int32_t>{1, 2, 4});
  maybe(p.virtual_stages, std::vector<std::int32_t>{1, 2});
  maybe(p.context, std::vector<std::int32_t>{1, 2});
  maybe(p.data, std::vector<std::int32_t>{1, 2});
  maybe(p.zero, std::vector<std::int32_t>{0, 1, 2, 3});
  maybe(p.micro_batch, std::vector<std::int32_t>{1, 2, 3});
  maybe(p.schedule, std::vector<Schedule>{Schedule::gpipe, Schedule::one_f_one_b,
                                          Schedule::interleaved, Schedule::zero_bubble});
  maybe(p.context_exchange,
        std::vector<ContextExchange>{ContextExchange::ring, ContextExchange::all_to_all});
  maybe(p.optimizer_groups, std::vector<std::int32_t>{1, 2, 3});
  maybe(p.recompute, std::vector<Recompute>{Recompute::none, Recompute::full});
  maybe(p.sequence_parallel, std::vector<bool>{false, true});
  if (s.experts > 0) maybe(p.expert, std::vector<std::int32_t>{1, 2, 3, 4});
  maybe(p.offload_optimizer, std::vector<bool>{false, true});
  maybe(p.recipe, std::vector<TrainRecipe>{TrainRecipe::pure_bf16, TrainRecipe::autocast_fp32});
  const std::string machine =
      test::one_of<std::string>({"rtx-4090", "2xrtx-4090", "4xa100-sxm-40gb", "6xl40s",
                                 "8xh100-sxm-80gb", "2x4xl40s", "3x2xa100-sxm-80gb"});
  x->cluster = test::machine(machine.c_str());
  // Cards of any size, so that memory binds at times.
  x->cluster.card.memory = gibibytes(test::one_of<double>({3, 5, 8, 12, 20, 40}));
  x->cluster.host.memory = gibibytes(test::one_of<double>({8, 32, 128, 1024}));
  auto set = set_up(test::catalogues(), q, x->cluster);
  if (!set) return nullptr;
  x->setup = *set;
  return x;
}

// A plan and what it is compared by.
using Key = std::tuple<double, int, double, std::array<int, 14>>;
struct Entry {
  Plan plan;
  Key key;
  double seconds = 0, bytes = 0;
  bool good = false;
};

class Loops {
 public:
  explicit Loops(const Space& x) : x_(x), s_(x.setup), fixed_(x.question.plan) {}

  std::vector<Entry> all(bool offload) {
    std::vector<Entry> out;
    const int cards = s_.cluster.per_node * s_.cluster.nodes;
    for (int t = 1; t <= cards; ++t)
      for (int p = 1; p * t <= cards; ++p)
        for (int c = 1; c * p * t <= cards; ++c)
          for (int d = 1; d * c * p * t <= cards; ++d) {
            if (t * p * c * d != cards) continue;
            for (int v = 1; v <= 14; ++v)
              for (int e = 1; e <= 8; ++e)
                for (int inner : {0, 1})
                  for (int order : {3, 2, 1, 0})
                    for (int way : {1, 0})
                      if (runs(order, p, v) && exchanges(way, c, t))
                        inside(t, p, v, c, d, e, inner, order, way, offload, out);
          }
    return out;
  }

 private:
  template <class T>
  static bool given(const std::optional<T>& f, T v) {
    return f && *f == v;
  }
  template <class T>
  static bool other(const std::optional<T>& f, T v) {
    return f && *f != v;
  }
  static bool power(int n) { return n == 1 || n == 2 || n == 4 || n == 8 || n == 16; }

  // Orders of passes: 0 1F1B (in turns where there are chunks), 1 the same said outright, 2 GPipe,
  // 3 zero bubble.
  bool runs(int order, int p, int v) const {
    if (fixed_.schedule) {
      // What was said holds for every plan, also for those without a pipeline.
      switch (*fixed_.schedule) {
        case Schedule::one_f_one_b:
          return order == 0 && (v == 1 || fixed_.virtual_stages);
        case Schedule::interleaved:
          return order == 1 && v > 1;
        case Schedule::gpipe:
          return order == 2 && v == 1;
        case Schedule::zero_bubble:
          return order == 3 && v == 1;
      }
    }
    if (order == 0) return true;
    if (order == 1 || p == 1 || v > 1) return false;
    static const std::map<std::string, std::string> can{{"torchtitan", "G"}};
    auto i = can.find(s_.engine.id);
    return fixed_.any_schedule || (order == 2 && i != can.end() && i->second == "G");
  }

  // 0: keys go round in a ring; 1: heads against parts of the sequence.
  bool exchanges(int way, int c, int t) const {
    static const std::map<std::string, std::string> can{
        {"megatron-lm", "01"}, {"torchtitan", "0"}, {"deepspeed", "1"}};
    auto i = can.find(s_.engine.id);
    const std::string ways = fixed_.context_exchange
                                 ? (*fixed_.context_exchange == ContextExchange::ring ? "0" : "1")
                             : i == can.end() ? "0"
                                              : i->second;
    // Of whole sequences nothing is exchanged: one of the ways stands for all.
    if (c == 1) return way == ways.front() - '0';
    if (ways.find(static_cast<char>('0' + way)) == std::string::npos) return false;
    if (way == 1) return x_.shape.heads % (c * t) == 0;
    return fixed_.context || *x_.question.job.sequence % (2 * c) == 0;
  }

  // Parts of the replicas that each hold what ZeRO divides.
  bool groups(int n, int z, int replicas) const {
    if (replicas % n != 0) return false;
    if (fixed_.optimizer_groups) return n == *fixed_.optimizer_groups;
    if (n == 1) return true;
    static const std::map<std::string, std::string> can{
        {"megatron-lm", "123"}, {"torchtitan", "23"}, {"deepspeed", "3"}, {"fsdp", "23"}};
    auto i = can.find(s_.engine.id);
    const bool adapters =
        x_.question.job.kind == JobKind::finetune && x_.question.job.method != TuneMethod::full;
    return !adapters && z > 0 && power(n) && 2 * n <= replicas && i != can.end() &&
           i->second.find(static_cast<char>('0' + z)) != std::string::npos;
  }

  bool divides(int t, int p, int v, int c, int d, int e, int inner) const {
    const test::Shape& m = x_.shape;
    const EnginePolicy& can = s_.engine;
    const int node = std::min(s_.cluster.per_node, s_.cluster.per_node * s_.cluster.nodes);
    if (other(fixed_.tensor, t) || other(fixed_.pipeline, p) || other(fixed_.context, c) ||
        other(fixed_.data, d) || other(fixed_.expert, e) || other(fixed_.virtual_stages, v))
      return false;
    if (!fixed_.tensor && (t > node || (!power(t) && t != node))) return false;
    if (t > 1 && !can.tensor_parallel) return false;
    if (m.heads % t != 0 || (m.kv_heads % t != 0 && t % m.kv_heads != 0)) return false;
    if (p > 1 && !can.pipeline_parallel) return false;
    if (v == 1 && p > m.layers) return false;
    if (v > 1) {
      if (p == 1) return false;
      if (!fixed_.virtual_stages && !can.interleaved_stages && !fixed_.any_schedule) return false;
      bool whole = false;
      for (std::int64_t more : {0, 1, 2}) whole = whole || (m.layers + more) % (p * v) == 0;
      if (!whole || p * v > m.layers + 2) return false;
    }
    if (!fixed_.context && c > 1 &&
        (!can.context_parallel || !power(c) || *x_.question.job.sequence % c != 0))
      return false;
    // Experts: a group of data and context ranks, or one that spans tensor ranks where asked.
    int slices = t;
    if (e > 1) {
      if (m.experts == 0 || m.experts % e != 0) return false;
      const bool plain = d * c % e == 0;
      if (!fixed_.expert && (!can.expert_parallel || !plain || !power(e))) return false;
      if (!plain && d * c * t % e != 0) return false;
      if (!plain) slices = 1;
      if (inner == 1 && (!plain || t == 1)) return false;
      if (inner == 1) slices = 1;
    } else if (inner == 1) {
      return false;
    }
    return m.ffn % (m.experts > 0 ? slices : t) == 0 && *x_.question.job.global_batch % d == 0;
  }

  void inside(int t, int p, int v, int c, int d, int e, int inner, int order, int way, bool offload,
              std::vector<Entry>& out) {
    if (!divides(t, p, v, c, d, e, inner)) return;
    const std::int64_t batch = *x_.question.job.global_batch;
    const bool adapters =
        x_.question.job.kind == JobKind::finetune && x_.question.job.method != TuneMethod::full;
    for (int mb = 64; mb >= 1; --mb)
      for (int acc = 1; acc <= batch; ++acc) {
        if (std::int64_t{1} * mb * acc * d != batch) continue;
        for (int z = 3; z >= 0; --z)
          for (int n = 1; n <= d * c; ++n)
            for (int re = 2; re >= 0; --re)
              for (int off = 7; off >= 0; --off) {
                if (other(fixed_.micro_batch, mb) || other(fixed_.zero, z)) continue;
                if (other(fixed_.recompute, static_cast<Recompute>(re))) continue;
                if (v > 1 && acc % p != 0) continue;
                if (!groups(n, z, d * c)) continue;
                if (z == 2 && p > 1) continue;
                if (!fixed_.zero) {
                  if (z == 3 && p > 1) continue;
                  if ((z == 1 || z == 2) && d * c == 1) continue;
                  if (z == 3 && d * c == 1 && !(off & 2)) continue;
                  if (adapters && (z == 1 || z == 2)) continue;
                }
                const bool o = off & 1, w = off & 2, a = off & 4;
                if (other(fixed_.offload_optimizer, o)) continue;
                if (o && !fixed_.offload_optimizer &&
                    (!offload || !s_.engine.offloads_optimizer || adapters))
                  continue;
                if (w && (z != 3 || !offload || !s_.engine.offloads_weights)) continue;
                if (a && (!offload || !s_.engine.offloads_activations)) continue;
                Plan plan;
                plan.tensor = t, plan.pipeline = p, plan.virtual_stages = v, plan.context = c;
                plan.data = d, plan.expert = e, plan.expert_tensor = inner, plan.zero = z;
                plan.micro_batch = mb, plan.accumulation = acc;
                plan.optimizer_groups = n;
                static constexpr std::array<Schedule, 4> kOrders{
                    Schedule::one_f_one_b, Schedule::interleaved, Schedule::gpipe,
                    Schedule::zero_bubble};
                plan.schedule = kOrders[static_cast<std::size_t>(order)];
                plan.context_exchange =
                    way == 1 ? ContextExchange::all_to_all : ContextExchange::ring;
                plan.recompute = static_cast<Recompute>(re);
                plan.offload_optimizer = o, plan.offload_weights = w, plan.offload_activations = a;
                plan.sequence_parallel =
                    fixed_.sequence_parallel ? *fixed_.sequence_parallel : t > 1;
                plan.recipe = fixed_.recipe ? *fixed_.recipe : own_recipe();
                out.push_back(judged(plan, off));
              }
      }
  }

  TrainRecipe own_recipe() const {
    static const std::map<std::string, TrainRecipe> names{
        {"mixed_fp32_grad", TrainRecipe::mixed_fp32_grad},
        {"pure_bf16", TrainRecipe::pure_bf16},
        {"autocast_fp32", TrainRecipe::autocast_fp32},
        {"fp32", TrainRecipe::fp32}};
    auto i = names.find(s_.engine.default_recipe);
    return i == names.end() ? TrainRecipe::mixed_16bit : i->second;
  }

  Entry judged(Plan plan, int off) {
    apply_formats(plan, formats_of(s_, fixed_), s_);
    // Tables of its own for whatever tables are made by; how experts are cut follows from the rest.
    const std::array<int, 8> shape{plan.tensor,        plan.expert,
                                   plan.context,       plan.sequence_parallel,
                                   plan.micro_batch,   static_cast<int>(plan.context_exchange),
                                   plan.expert_tensor, plan.data * plan.context % plan.expert == 0};
    auto i = tables_.find(shape);
    if (i == tables_.end()) {
      auto made = prepare_for(s_, domain_of(s_, fixed_, plan));
      RC_ASSERT(made.has_value());
      i = tables_.emplace(shape, std::move(*made)).first;
    }
    const Evaluation e = evaluate(i->second, plan);
    const double step = e[Metric::step_seconds];
    double excess = 0;
    if (e[Metric::memory_bytes] > e[Metric::usable_bytes])
      excess += 1e4 + (e[Metric::memory_bytes] / e[Metric::usable_bytes] - 1);
    if (const auto& host = x_.cluster.host.memory)
      if (e.memory.host.total() > host->in_base())
        excess += 1e4 + (e.memory.host.total() / host->in_base() - 1);
    if (auto limit = x_.question.job.deadline)
      if (e[Metric::time_to_train_seconds] > limit->in_base())
        excess += e[Metric::time_to_train_seconds] / limit->in_base() - 1;
    // Twenty bits behind the leading one.
    int exponent = 0;
    const double part = std::frexp(step, &exponent);
    const double wish = std::ldexp(std::round(std::ldexp(part, 21)), exponent);
    Entry out;
    out.plan = plan;
    out.seconds = step;
    out.bytes = e[Metric::memory_bytes];
    out.good = excess == 0;
    // Excesses are sums in another order.
    out.key = {
        excess > 0 ? std::round(excess * 1e7) / 1e7 : 0,
        off,
        wish,
        {plan.tensor * plan.pipeline, plan.tensor, plan.virtual_stages, order_of(plan),
         plan.context, static_cast<int>(plan.context_exchange), plan.expert, plan.expert_tensor,
         plan.zero, plan.optimizer_groups, static_cast<int>(plan.recompute),
         static_cast<int>(plan.recipe), plan.micro_batch, plan.data}};
    return out;
  }

  static int order_of(const Plan& p) {
    return p.schedule == Schedule::one_f_one_b   ? 0
           : p.schedule == Schedule::gpipe       ? 1
           : p.schedule == Schedule::interleaved ? 3
                                                 : 4;
  }

  const Space& x_;
  const Setup& s_;
  const PlanRequest& fixed_;
  std::map<std::array<int, 8>, Tables> tables_;
};

inline const Entry* least(const std::vector<Entry>& all) {
  const Entry* best = nullptr;
  for (const Entry& e : all)
    if (!best || e.key < best->key) best = &e;
  return best;
}

}  // namespace trigon::test
