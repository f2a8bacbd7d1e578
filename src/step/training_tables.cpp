// Operators of a training pass and what they take, tabulated by degree.

#include "step/training_tables.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "lower/lower.hpp"
#include "plan/legality.hpp"
#include "step/pass_time.hpp"
#include "step/training_work.hpp"

namespace trigon {

LayerWork& LayerWork::operator+=(const LayerWork& o) {
  forward += o.forward, input += o.input, weight += o.weight, again += o.again;
  tensor += o.tensor, expert += o.expert, context += o.context;
  return *this;
}
LayerWork LayerWork::operator-(const LayerWork& o) const {
  LayerWork w = *this;
  return w += o * -1;
}
LayerWork LayerWork::operator*(double k) const {
  return {forward * k, input * k, weight * k, again * k, tensor * k, expert * k, context * k};
}

LayerWork TrainPass::of(std::int64_t begin, std::int64_t end, double count) const {
  if (upto.empty()) return layers * (static_cast<double>(end - begin) / std::max(1.0, count));
  return upto[static_cast<std::size_t>(end)] - upto[static_cast<std::size_t>(begin)];
}

Pass training_pass(const Tables& t, const Stack& stack, std::int64_t s, Pass p) {
  const std::int64_t source = training_source(t.job);
  const auto positions = [&](const Stack& x) {
    return static_cast<double>(positions_of(x, &x == t.stack ? s : source));
  };
  p.new_tokens = positions(stack);
  p.logits_rows = &stack == t.stack ? p.new_tokens * stack.label_share : 0;
  if (t.source && &stack == t.stack) {
    p.source_tokens = positions(*t.source);
    p.project_source = true;
  }
  return p;
}

Pass training_pass_of(const Tables& t, const Plan& plan) {
  Pass p;
  p.sequences = plan.micro_batch;
  p.activations = t.domain.activations;
  p.tensor = plan.tensor;
  p.expert = plan.expert;
  p.context = plan.context;
  p.expert_tensor = expert_tensor_ranks(plan, false);
  p.heads_exchanged = plan.context_exchange == ContextExchange::all_to_all;
  p.expert_inside_tensor = false;
  p.sequence_parallel = plan.sequence_parallel;
  p.fused_elementwise = t.engine.autograd != Autograd::eager;
  p.replace_weights = t.domain.weights;
  p.training = true;
  p.trains_matrices = t.domain.trains_matrices;
  if (!t.engine.flash_attention) p.score_bytes = t.engine.score_bytes;
  // The loss, a third of its traffic in the forward pass. Eager: logits and a 32-bit copy, its
  // log-softmax, the gradients of both (torch.nn.functional.cross_entropy on float logits); one
  // kernel reads logits twice and writes their gradient once.
  const double moved = t.engine.loss_traffic_bytes > 0        ? t.engine.loss_traffic_bytes
                       : t.engine.autograd == Autograd::eager ? 28
                                                              : 8;
  p.loss_bytes = moved / 3;
  return p;
}

namespace {

// The gradient of a matrix sums over all rows that met it: few tiles and a long reduction, which
// libraries cut into parts that run side by side and are added up in 32 bit (CUTLASS, "Efficient
// GEMM in CUDA", parallelized reductions). They choose how many by what is fastest.
double weight_gradient_seconds(const DeviceModel& d, const Operator& op) {
  constexpr double kTile = 64;
  double best = operator_time(d, op).seconds;
  const double tiles = op.groups * std::ceil(op.m / op.groups / kTile) * std::ceil(op.n / kTile);
  for (double parts = 2; parts * tiles < 2 * d.sm_count && parts <= op.k; parts *= 2) {
    Operator cut = op;
    cut.m *= parts;
    cut.groups *= parts;
    cut.k /= parts;
    cut.data_bytes += 8 * op.m * op.n * parts;
    best = std::min(best, operator_time(d, cut).seconds);
  }
  return best;
}

}  // namespace

BackwardTime backward_time(const DeviceModel& d, const Operator& op, bool weights_train) {
  const bool weights = weights_train && op.trainable;
  if (op.kind == OperatorKind::convolution) {
    // Each gradient is as many products as the forward pass: of the input with the filters turned
    // round, of the weights over all positions.
    const double forward = operator_time(d, op).seconds;
    return {op.input_gradient ? forward : 0, weights ? forward : 0};
  }
  if (op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm) {
    BackwardTime t;
    Operator input = op;
    std::swap(input.n, input.k);
    if (op.input_gradient) t.input = operator_time(d, input).seconds;
    if (weights) {
      Operator weight = op;
      if (op.kind == OperatorKind::gemm) {
        weight.m = op.k * op.groups;
        weight.k = op.m / op.groups;
        t.weight = weight_gradient_seconds(d, weight);
      } else {
        t.weight = operator_time(d, weight).seconds;
      }
    }
    return t;
  }
  const OperatorTime f = operator_time(d, op);
  // Flash attention recomputes the scores: 5 products instead of 2. Scores that were kept take 4.
  if (op.kind == OperatorKind::attention) return {(op.scores_kept ? 2 : 2.5) * f.seconds, 0};
  // An embedding has gradients of its rows alone.
  if (op.kind == OperatorKind::gather) return {0, 2 * f.seconds};
  if (op.kind == OperatorKind::elementwise) {
    if (op.backward_bytes < 0) return {2 * f.seconds, 0};
    if (op.backward_bytes == 0) return {};
    Operator back = op;
    back.data_bytes = op.backward_bytes;
    return {operator_time(d, back).seconds, 0};
  }
  // The states of the forward pass are computed again, then gradients of both factors.
  if (op.kind == OperatorKind::scan) return {3 * f.seconds, 0};
  return {f.seconds, 0};  // collectives mirror the forward ones
}

// Rows are dealt to ranks as by throws of dice: of n ranks the busiest expects sqrt(2 ln n)
// standard deviations more than the mean (the largest of n normal variables).
double busiest_share(const Tables& t, const Operator& op, double ranks) {
  if (ranks <= 1) return 1;
  if (t.domain.expert_capacity > 0) return std::max(1.0, t.domain.expert_capacity);
  double rows = op.m;
  if (op.kind == OperatorKind::all_to_all)
    rows = op.payload_bytes / (bits_per_element(op.activations) / 8) /
           std::max(1.0, static_cast<double>(t.stack->hidden));
  if (rows <= 0) return 1;
  return std::min(ranks, 1 + std::sqrt(2 * std::log(ranks) * (1 - 1 / ranks) / rows));
}

namespace {

// An operator on its own, before what its group of ranks makes of it.
TrainOperator alone(const Tables& t, const Operator& op, bool weights_train) {
  TrainOperator out;
  out.forward = operator_time(t.device, op).seconds;
  out.backward = backward_time(t.device, op, weights_train);
  return out;
}

TrainOperator in_group(const Tables& t, const Pass& p, const Operator& op, TrainOperator out) {
  const bool experts = op.kind == OperatorKind::grouped_gemm || op.kind == OperatorKind::all_to_all;
  if (experts && p.expert > 1) {
    const double most = busiest_share(t, op, p.expert);
    out.forward *= most;
    out.backward.input *= most, out.backward.weight *= most;
  }
  if (op.kind != OperatorKind::attention || p.context < 2) return out;
  const double bytes = bits_per_element(p.activations) / 8;
  const double tokens = p.sequences * op.query_tokens;  // on this rank
  if (p.heads_exchanged) {
    // Queries, keys, values and outputs change from parts of the sequence to parts of the heads,
    // and back in the backward pass; nothing computes meanwhile.
    auto exchange = [&](double heads) {
      return collective_seconds(t.device, Collective::all_to_all, tokens * heads * op.k * bytes,
                                p.context, p.tensor);
    };
    const double once = 2 * exchange(op.m) + 2 * exchange(op.n);
    out.forward += once;
    out.backward.input += once;
    out.context = 2 * once;
    return out;
  }
  // Keys and values of all ranks pass by, and their gradients once more; the longer of computing
  // and passing sets the pace.
  const double ring =
      collective_seconds(t.device, Collective::all_gather,
                         tokens * p.context * op.n * (op.k + op.k) * bytes, p.context, p.tensor);
  const double more = std::max(0.0, ring - out.forward);
  const double more_back = std::max(0.0, 2 * ring - out.backward.input);
  out.forward += more;
  out.backward.input += more_back;
  out.context = more + more_back;
  return out;
}

bool is_collective(OperatorKind k) { return k >= OperatorKind::all_reduce; }

const TrainOperator& alone_once(const Tables& t, const Operator& op, OperatorTimes& times) {
  auto [i, is_new] = times.try_emplace(op);
  if (is_new) i->second = alone(t, op, !t.train.frozen_base);
  return i->second;
}

// The part of an operator of a layer that selective recomputation runs again.
double repeated_share(const EnginePolicy& e, const Operator& op) {
  const bool product = op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm;
  if (e.selective_by_operator) {
    if (is_collective(op.kind) || op.kind == OperatorKind::attention) return 0;
    return product ? 0.5 : 1;
  }
  const RecomputeModules& m = e.selective;
  const std::string_view name = op.name;
  const std::string_view part = name.substr(0, name.find('.'));
  if (op.kind == OperatorKind::attention) return m.attention ? 1 : 0;
  if (name == "norm") return m.norms ? 1 : 0;
  if (name == "moe.activation" && m.expert_activation) return 1;
  if (name == "attention.q_up" || name == "attention.kv_up") return m.latent_up ? 1 : 0;
  if (part == "mlp") return m.mlp ? 1 : 0;
  if (part == "moe") return m.experts ? 1 : 0;
  return 0;
}

// Operators that run together, and the host that launches them.
LayerWork work_of(const Tables& t, const Pass& p, const OperatorList& ops, OperatorTimes& times) {
  LayerWork w;
  BesideProducts beside;
  for (const Operator& op : ops) {
    const TrainOperator x = in_group(t, p, op, alone_once(t, op, times));
    w.forward += op.repeat * x.forward;
    w.input += op.repeat * x.backward.input;
    w.weight += op.repeat * x.backward.weight;
    w.context += op.repeat * x.context;
    w.again += op.repeat * x.forward * repeated_share(t.engine, op);
    beside.add(op, x);
    if (is_collective(op.kind))
      (op.kind == OperatorKind::all_to_all ? w.expert : w.tensor) +=
          op.repeat * (x.forward + x.backward.total());
  }
  const auto [forward_beside, backward_beside] = beside.hidden(t.engine, p);
  w.forward -= forward_beside;
  w.input -= backward_beside;
  w.tensor = std::max(0.0, w.tensor - forward_beside - backward_beside);
  const double host = layer_host(t, ops);
  const double backward = w.backward();
  w.forward = with_host(t.device, w.forward, host);
  // Products have two gradients to launch.
  const double waited = with_host(t.device, backward, 2 * host);
  const double longer = backward > 0 ? waited / backward : 1;
  w.weight *= longer;
  w.input = waited - w.weight;
  return w;
}

// FLOPs of one sequence on one rank, causal attention halved by mean_keys.
void count_flops(Tables& t, std::int64_t sequence) {
  TrainTables& tr = t.train;
  tr.forward_flops = tr.attention_forward_flops = tr.head_flops = 0;
  for (const Stack* stack : stacks_in_order(*t.model)) {
    OperatorList ops;
    const Pass p = training_pass(t, *stack, sequence, {});
    for (const LayerRun& run : stack->runs) {
      ops.clear();
      lower_layer(*stack, run.layer, p, ops);
      for (const Operator& op : ops) {
        if (op.kind == OperatorKind::elementwise || op.kind == OperatorKind::gather) continue;
        tr.forward_flops += op.flops * static_cast<double>(run.count);
        if (op.kind == OperatorKind::attention)
          tr.attention_forward_flops += op.flops * static_cast<double>(run.count);
      }
    }
    ops.clear();
    lower_embedding(*stack, p, ops);
    lower_head(*stack, p, ops);
    for (const Operator& op : ops)
      if (op.kind == OperatorKind::gemm) tr.head_flops += op.flops;
  }
  tr.forward_flops += tr.head_flops;
}

TrainPass train_pass(const Tables& t, std::int64_t sequence, const Plan& degrees,
                     OperatorTimes& times) {
  TrainPass out;
  const Pass p = training_pass_of(t, degrees);
  OperatorList ops;
  out.upto.push_back({});
  for (const Stack* stack : stacks_in_order(*t.model)) {
    const Pass own = training_pass(t, *stack, sequence, p);
    for (const LayerRun& run : stack->runs) {
      ops.clear();
      lower_layer(*stack, run.layer, own, ops);
      const LayerWork one = work_of(t, own, ops, times);
      for (std::int64_t i = 0; i < run.count; ++i) {
        out.layers += one;
        out.upto.push_back(out.layers);
      }
    }
    ops.clear();
    lower_embedding(*stack, own, ops);
    out.embedding += work_of(t, own, ops, times);
    ops.clear();
    lower_head(*stack, own, ops);
    out.head += work_of(t, own, ops, times);
  }
  out.boundary = degrees.micro_batch * static_cast<double>(sequence) *
                 static_cast<double>(t.stack->hidden) * bits_per_element(p.activations) / 8 /
                 degrees.context / (degrees.sequence_parallel ? degrees.tensor : 1);
  return out;
}

}  // namespace

void BesideProducts::add(const Operator& op, const TrainOperator& x) {
  weights += op.repeat * x.backward.weight;
  if (op.kind == OperatorKind::gemm) products += op.repeat * x.forward;
  if (op.kind < OperatorKind::all_reduce || op.kind > OperatorKind::reduce_scatter) return;
  forward += op.repeat * x.forward;
  backward += op.repeat * x.backward.input;
}

std::pair<double, double> BesideProducts::hidden(const EnginePolicy& e, const Pass& p) const {
  const auto taken = [](double exchange, double other) {
    return std::min(exchange, other) * (1 - kSlowing);
  };
  return {e.tensor_forward_overlaps && p.sequence_parallel ? taken(forward, products) : 0.0,
          e.tensor_backward_overlaps ? taken(backward, weights) : 0.0};
}

double layer_host(const Tables& t, const OperatorList& ops) {
  constexpr double kPlain = 30, kRouting = 50;
  double launches = kPlain;
  for (const Operator& op : ops)
    if (std::string_view(op.name) == "moe.router") launches += kRouting;
  return t.device.engine.layer_overhead_seconds * launches / kPlain;
}

TrainOperator train_operator(const Tables& t, const Pass& p, const Operator& op,
                             bool weights_train) {
  return in_group(t, p, op, alone(t, op, weights_train));
}

LaterPasses::LaterPasses(std::size_t count, std::int64_t sequence)
    : sequence_(sequence), passes_(count), ready_(std::make_unique<std::atomic<bool>[]>(count)) {}

const TrainPass& LaterPasses::at(const Tables& t, std::size_t i, const Plan& plan) {
  if (ready_[i].load(std::memory_order_acquire)) return passes_[i];
  const std::lock_guard lock(making_);
  if (!ready_[i].load(std::memory_order_relaxed)) {
    Plan degrees = plan;
    degrees.expert_tensor = expert_tensor_ranks(plan, false);
    passes_[i] = train_pass(t, sequence_, degrees, times_);
    ready_[i].store(true, std::memory_order_release);
  }
  return passes_[i];
}

void fill_train(Tables& t, std::int64_t sequence) {
  t.train.pass.clear();
  t.train.later.reset();
  count_flops(t, sequence);
  const PlanDomain& domain = t.domain;
  OperatorTimes times;
  if (domain.passes_later) {
    const std::size_t all = domain.tensor.size() * domain.expert.size() *
                            domain.expert_tensor.size() * domain.context.size() *
                            domain.context_exchange.size() * 2 * domain.micro_batch.size();
    t.train.later = std::make_shared<LaterPasses>(all, sequence);
    return;
  }
  auto wanted = [&](const Plan& p) {
    if (p.sequence_parallel ? !domain.with_sequence_parallel : !domain.without_sequence_parallel)
      return false;
    if (domain.sequence_parallel_by_tensor && p.sequence_parallel != (p.tensor > 1)) return false;
    return p.context > 1 || p.context_exchange == domain.context_exchange.front();
  };
  Plan p;
  for (std::int32_t tensor : domain.tensor)
    for (std::int32_t expert : domain.expert)
      for (std::int32_t inner : domain.expert_tensor)
        for (std::int32_t context : domain.context)
          for (ContextExchange exchange : domain.context_exchange)
            for (bool sp : {false, true})
              for (std::int32_t mb : domain.micro_batch) {
                p.tensor = tensor;
                p.expert = expert;
                p.expert_tensor = inner > 0 ? inner : tensor;
                p.context = context;
                p.context_exchange = exchange;
                p.sequence_parallel = sp;
                p.micro_batch = mb;
                t.train.pass.push_back(wanted(p) ? train_pass(t, sequence, p, times) : TrainPass{});
              }
}

}  // namespace trigon
