#include "memory/memory_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "memory/formulas.hpp"
#include "memory/stage_layers.hpp"
#include "plan/legality.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

constexpr int kPreparedDegrees = 8;  // 1, 2, 4 ... 128; others are computed when asked

}  // namespace

Result<MemoryModel> MemoryModel::prepare(const Model& model, const Job& job, const Cluster& cluster,
                                         const EnginePolicy& engine, Range usable) {
  MemoryModel m;
  m.stack_ = language_stack(model);
  if (!m.stack_) m.graphs_ = graph_parts(model, engine);
  if (!m.stack_ && m.graphs_.empty())
    return fail(ErrorCode::unsupported, message(MemoryMessage::no_language_stack, model.id));
  m.stacks_ = stacks_in_order(model);
  for (const Stack* s : m.stacks_) m.layers_ += s->layers();
  if (m.stack_ && m.stack_->layers() <= 0)
    return fail(ErrorCode::malformed, message(MemoryMessage::no_layers, model.id));
  if (!(usable.value > 0) || !std::isfinite(usable.value))
    return fail(ErrorCode::bad_argument, message(MemoryMessage::unusable_memory));
  m.engine_ = engine.on_card(
      bytes(usable.value), cluster.accelerator ? std::string_view(cluster.accelerator->architecture)
                                               : std::string_view());
  m.usable_ = usable;
  m.main_format_ = model.weight_format;
  m.most_ranks_ = std::max(1, cluster.count());
  if (auto serve = std::get_if<Serve>(&job)) {
    m.input_tokens_ = d(serve->input_tokens);
    m.output_tokens_ = d(serve->output_tokens);
  } else if (auto batch = std::get_if<Batch>(&job)) {
    m.input_tokens_ = d(batch->input_tokens);
    m.output_tokens_ = d(batch->output_tokens);
  } else if (auto train = std::get_if<Train>(&job)) {
    m.serving_ = false;
    m.sequence_ = d(train->sequence);
  } else if (auto tune = std::get_if<FineTune>(&job)) {
    m.serving_ = false;
    m.sequence_ = d(tune->sequence);
    m.tuning_ = tune->method != TuneMethod::full;
    m.quantised_base_ = tune->method == TuneMethod::qlora;
    m.adapter_rank_ = d(tune->rank);
    m.targets_ = tune->targets;
    m.dora_ = tune->dora;
  }
  m.source_ = d(training_source(job));
  m.rules_ = {m.main_format_, m.tuning_, m.targets_, m.engine_.mla_absorbed};
  if (m.graphs()) return m;

  for (const Component& c : model.components)
    if (auto tower = std::get_if<Stack>(&c.body); tower && c.role == ComponentRole::vision_tower) {
      m.tower_bytes_ += d(trigon::weight_bytes(*tower).value());
      m.tower_parameters_ += d(count_parameters(*tower).total);
    }
  std::vector<std::uint16_t> kind_of_run;
  for (const Stack* stack : m.stacks_) {
    CacheLayout layout = cache_layout(*stack);
    for (std::size_t i = 0; i < stack->runs.size(); ++i) {
      const LayerRun& run = stack->runs[i];
      std::size_t k = 0;
      while (k < m.kinds_.size() &&
             !(m.kind_stacks_[k] == stack && same_layer(*m.kinds_[k], run.layer)))
        ++k;
      if (k == m.kinds_.size()) {
        m.kinds_.push_back(&run.layer);
        m.kind_stacks_.push_back(stack);
        m.kind_shared_.push_back(run.shared ? 1 : 0);
        m.caches_.push_back(layout.runs[i]);
      }
      kind_of_run.push_back(static_cast<std::uint16_t>(k));
    }
  }
  const std::size_t kinds = m.kinds_.size();
  m.kind_counts_.resize(static_cast<std::size_t>(m.layers_ + 1) * kinds);
  std::size_t layer = 0, run = 0;
  for (const Stack* stack : m.stacks_)
    for (std::size_t i = 0; i < stack->runs.size(); ++i, ++run)
      for (std::int64_t c = 0; c < stack->runs[i].count; ++c, ++layer)
        for (std::size_t k = 0; k < kinds; ++k)
          m.kind_counts_[(layer + 1) * kinds + k] = static_cast<std::uint16_t>(
              m.kind_counts_[layer * kinds + k] + (kind_of_run[run] == k ? 1 : 0));
  for (int i = 0; i < kPreparedDegrees && (i == 0 || 1 << i <= m.most_ranks_); ++i) {
    for (std::size_t k = 0; k < kinds; ++k) m.shares_.push_back(m.kind_share(k, 1 << i));
    m.ends_.push_back(m.end_share(1 << i));
  }
  return m;
}

ActivationRules MemoryModel::activation_rules(std::size_t kind, int tensor) const {
  ActivationRules r;
  r.autograd = engine_.autograd;
  r.flash_attention = engine_.flash_attention;
  r.tensor = r.expert_tensor = tensor;
  r.frozen = tuning_;
  r.targets = targets_;
  r.adapter_dropout_bytes = engine_.adapter_dropout_bytes;
  for (const SubLayer& part : kinds_[kind]->parts)
    if (auto mlp = std::get_if<Mlp>(&part)) r.dropout = engine_.dropout_masks && !mlp->gated;
  return r;
}

MemoryModel::KindShare MemoryModel::kind_share(std::size_t kind, int tensor) const {
  const Layer& layer = *kinds_[kind];
  const std::int64_t hidden = kind_stacks_[kind]->hidden;
  KindShare s;
  s.weights = share_of(layer, tensor, rules_);
  s.cache = cache_share(layer, caches_[kind], tensor, rules_);
  ActivationRules r = activation_rules(kind, tensor);
  for (int sp = 0; sp < 2; ++sp) {
    r.sequence_parallel = sp == 1;
    auto i = static_cast<std::size_t>(sp);
    s.forward[i] = forward_peak(layer, hidden, r);
    if (serving_) continue;
    s.saved[i][0] = saved_for_backward(layer, hidden, r);
    s.saved[i][1] = saved_selective(layer, hidden, r);
    s.saved[i][2] = saved_full_recompute(hidden, r);
  }
  return s;
}

MemoryModel::EndShare MemoryModel::end_share(int tensor) const {
  EndShare e;
  const Stack& s = *stack_;
  if (s.embedding) e.embedding = embedding_share(*s.embedding, tensor, engine_.vocabulary_padding);
  if (s.head)
    e.head = head_share(*s.head, tensor, engine_.vocabulary_padding);
  else if (s.tied)
    e.head = e.embedding;
  for (const Norm& n : s.final_norms) e.rest += share_of(n);
  if (s.embedding_norm) e.rest += share_of(*s.embedding_norm);
  if (s.positions) e.rest += embedding_share(*s.positions, 1, 1);
  for (const Linear& l : s.projections) e.rest += share_of(l, 1, rules_);
  for (const Tail& t : s.tail) {
    e.rest += share_of(t.linear, 1, rules_);
    if (t.norm) e.rest += share_of(*t.norm);
  }
  if (s.tied_bias) e.rest += share_of(Norm{s.vocabulary, false, s.embedding->format});
  for (const Stack* b : stacks_) {
    for (const FrontEnd& f : b->front) {
      e.before += share_of(f.linear, 1, rules_);
      if (f.norm) e.before += share_of(*f.norm);
    }
    if (b->relative_positions) e.before += embedding_share(*b->relative_positions, 1, 1);
    if (b->token_types) e.before += embedding_share(*b->token_types, 1, 1);
    if (b->relative_norm) e.before += share_of(*b->relative_norm);
    if (b == stack_) continue;
    if (b->embedding)
      e.before += embedding_share(*b->embedding, tensor, engine_.vocabulary_padding);
    if (b->positions) e.before += embedding_share(*b->positions, 1, 1);
    if (b->embedding_norm) e.before += share_of(*b->embedding_norm);
    for (const Norm& n : b->final_norms) e.before += share_of(n);
    for (const Linear& l : b->projections) e.before += share_of(l, 1, rules_);
  }
  e.head_rows = vocabulary_rows(s.vocabulary, tensor, engine_.vocabulary_padding);
  return e;
}

int MemoryModel::degree_index(int tensor) const {
  if (tensor < 1 || !std::has_single_bit(static_cast<unsigned>(tensor))) return -1;
  int i = std::countr_zero(static_cast<unsigned>(tensor));
  return i < static_cast<int>(ends_.size()) ? i : -1;
}

const MemoryModel::KindShare& MemoryModel::kind_at(std::size_t kind, int tensor,
                                                   KindShare& scratch) const {
  int i = degree_index(tensor);
  if (i >= 0) return shares_[static_cast<std::size_t>(i) * kinds_.size() + kind];
  scratch = kind_share(kind, std::max(tensor, 1));
  return scratch;
}

// 0: matrices as the checkpoint stores them.
double MemoryModel::weight_bits(const Plan& plan) const {
  // QLoRA quantises a base that is not quantised yet.
  if (quantised_base_ && !info(plan.weights).weight_only) return bits_per_element(Format::nf4);
  if (plan.weights == main_format_) return 0;
  return bits_per_element(plan.weights);
}

double MemoryModel::activation_element(const Plan& plan) const {
  return plan.activations == Format::f32 || plan.activations == Format::tf32 ? 4 : 2;
}

template <class Recorder>
RankMemory MemoryModel::evaluate(const Plan& plan, int stage, Recorder& recorder) const {
  if (graphs()) return graph_memory(plan, static_cast<double>(plan.micro_batch), recorder);
  return serving_ ? serving_memory(plan, stage, asked(plan), recorder)
                  : training_memory(plan, stage, recorder);
}

template RankMemory MemoryModel::evaluate(const Plan&, int, NoRecord&) const;
template RankMemory MemoryModel::evaluate(const Plan&, int, Record&) const;

MemoryModel::Load MemoryModel::asked(const Plan& plan) const {
  Load l{static_cast<double>(plan.micro_batch), input_tokens_ + output_tokens_, input_tokens_, 0};
  if (stacks_.size() > 1) {
    // The decoder's own cache holds what it wrote; the input is the encoder's.
    l.context = std::max(1.0, output_tokens_);
    l.source = input_tokens_;
  }
  return l;
}

// Weights of a stage as they lie, undivided by ZeRO; experts apart.
template <class Recorder>
WeightShare MemoryModel::stage_weights(const Plan& plan, int stage, WeightShare* experts,
                                       Recorder& recorder) const {
  const StageLayers layers = stage_layers(plan, stage);
  const double bits = weight_bits(plan);
  WeightShare dense;
  KindShare scratch;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    double n = layers.count(k);
    if (n == 0) continue;
    const KindShare& s = kind_at(k, plan.tensor, scratch);
    dense += s.weights.dense.times(layers.stored(k));
    if (s.weights.expert_count > 0) {
      // A rank holds whole experts, each divided by the ranks that share it.
      double local = std::ceil(s.weights.expert_count / std::max(plan.expert, 1));
      double inner = expert_tensor_ranks(plan, serving_);
      *experts += s.weights.experts.times(n * local / s.weights.expert_count / inner);
    }
  }
  const double in_layers = Recorder::on ? dense.bytes(bits) : 0;
  const int i = degree_index(plan.tensor);
  const EndShare computed = i >= 0 ? EndShare{} : end_share(std::max(plan.tensor, 1));
  const EndShare& end = i >= 0 ? ends_[static_cast<std::size_t>(i)] : computed;
  auto ends = [&](WeightShare w) {
    // A quantiser to GGUF converts embedding and head too; others leave them.
    if (bits > 0 && info(plan.weights).gguf) {
      w.matrix_parameters += w.kept_parameters;
      w.matrix_bytes += w.kept_bytes;
      w.kept_bytes = w.kept_parameters = 0;
    }
    return w;
  };
  const bool first = stage == 0, last = stage == plan.pipeline - 1;
  double embedding = 0, head = 0;
  if (first && !engine_.embedding_on_host) {
    dense += ends(end.embedding);
    embedding = ends(end.embedding).bytes(bits);
  }
  // Servers load the vision tower beside the first layers; ggml keeps it in a file of its own.
  if (first && serving_ && !engine_.compute_buffer) {
    dense.kept_bytes += tower_bytes_ / std::max(plan.tensor, 1);
    dense.kept_parameters += tower_parameters_ / std::max(plan.tensor, 1);
  }
  // A tied head is the embedding itself where both lie on the same device.
  const bool shared = stack_->tied && !stack_->head && first && !engine_.embedding_on_host;
  if (last && !shared) {
    dense += ends(end.head);
    head = ends(end.head).bytes(bits);
  }
  if (last) dense += end.rest;
  if (first) dense += end.before;
  if constexpr (Recorder::on) {
    explain_weights(plan, stage, recorder);
    const double others = dense.bytes(bits) - in_layers - embedding - head;
    recorder.step([&] {
      return DerivationStep{
          &memory_formula::end_weights,
          embedding + head + others,
          "B",
          "outside the layers",
          {{"embedding", embedding, "B"}, {"head", head, "B"}, {"others", others, "B"}}};
    });
  }
  recorder.step([&] {
    return DerivationStep{&memory_formula::weights,
                          dense.bytes(bits) + experts->bytes(bits),
                          "B",
                          "stage " + std::to_string(stage),
                          {{"kept", dense.kept_bytes, "B"},
                           {"matrices", dense.bytes(bits) - dense.kept_bytes, "B"},
                           {"experts", experts->bytes(bits), "B"},
                           {"layers", layers.total(), ""},
                           {"tensor", static_cast<double>(plan.tensor), ""}}};
  });
  return dense;
}

template WeightShare MemoryModel::stage_weights(const Plan&, int, WeightShare*, NoRecord&) const;
template WeightShare MemoryModel::stage_weights(const Plan&, int, WeightShare*, Record&) const;

double MemoryModel::weight_bytes(const Plan& plan, int stage) const {
  NoRecord quiet;
  if (graphs()) return graph_memory(plan, 0, quiet)[MemoryTerm::weights];
  WeightShare experts;
  WeightShare dense = stage_weights(plan, stage, &experts, quiet);
  const double bits = weight_bits(plan);
  return dense.bytes(bits) + experts.bytes(bits);
}

template <class Recorder>
void MemoryModel::add_runtime(const Plan& plan, RankMemory& m, Recorder& recorder) const {
  const int ranks = serving_ ? plan.tensor * plan.pipeline : plan.ranks();
  m[MemoryTerm::context] = engine_.context_overhead.in_base();
  const Bytes collectives = ranks == 2 && engine_.collective_overhead_pair > Bytes{}
                                ? engine_.collective_overhead_pair
                                : engine_.collective_overhead;
  m[MemoryTerm::collectives] = ranks > 1 ? collectives.in_base() : 0;
  m[MemoryTerm::graphs] =
      serving_ && engine_.launch == Launch::graphs ? engine_.graph_overhead.in_base() : 0;
  recorder.step([&] {
    return DerivationStep{
        &memory_formula::runtime,
        m[MemoryTerm::context] + m[MemoryTerm::collectives] + m[MemoryTerm::graphs],
        "B",
        "rank",
        {{"context", m[MemoryTerm::context], "B", engine_.fact_id("context_mib")},
         {"collectives", m[MemoryTerm::collectives], "B", engine_.fact_id("collectives_mib")},
         {"graphs", m[MemoryTerm::graphs], "B", engine_.fact_id("graphs_mib")}}};
  });
}

template void MemoryModel::add_runtime(const Plan&, RankMemory&, NoRecord&) const;
template void MemoryModel::add_runtime(const Plan&, RankMemory&, Record&) const;

FullestRank MemoryModel::fullest(const Plan& plan) const {
  return fullest_at(plan, serving_ ? asked(plan) : Load{});
}

FullestRank MemoryModel::fullest_at(const Plan& plan, const Load& load) const {
  NoRecord quiet;
  if (graphs())
    return {graph_memory(plan, serving_ ? load.sequences : static_cast<double>(plan.micro_batch),
                         quiet),
            0};
  FullestRank best;
  double least = 0;
  for (int s = 0; s < plan.pipeline; ++s) {
    RankMemory m =
        serving_ ? serving_memory(plan, s, load, quiet) : training_memory(plan, s, quiet);
    const double room = budget_bytes(plan, m).value - m.total();
    if (s == 0 || room < least) {
      least = room;
      best = {m, s};
    }
  }
  return best;
}

// The budget is stated so that a rank fits when its total is at most the budget:
//   total fraction:  weights + kv + activations + ... <= f * total; graphs and, in newer
//                    versions, the device context lie outside the fraction
//   free fraction:   kv <= f * (total - rest)
//   static fraction: weights + kv <= f * total, and everything <= total; f may follow from what
//                    the engine reserves
Range MemoryModel::budget_bytes(const Plan& plan, const RankMemory& m) const {
  const double all = m.total(), kv = m[MemoryTerm::kv_cache];
  const double f = engine_.fraction(plan.tensor);
  const double reserve =
      engine_.derives_fraction() ? engine_.reserve(plan.tensor, plan.pipeline).in_base() : 0;
  auto of = [&](double total) {
    if (!serving_) return total;
    switch (engine_.pool) {
      case PoolRule::none:
        return total;
      case PoolRule::total_fraction: {
        double outside = (engine_.graphs_inside_fraction ? 0 : m[MemoryTerm::graphs]) +
                         (engine_.context_inside_fraction ? 0 : m[MemoryTerm::context]);
        return std::min(total, f * total + outside);
      }
      case PoolRule::free_fraction:
        return std::min(total, f * total + (1 - f) * (all - kv));
      case PoolRule::static_fraction: {
        double pool = reserve > 0 ? std::max(0.0, total - reserve) : f * total;
        return std::min(total, pool + (all - kv - m[MemoryTerm::weights]));
      }
    }
    return total;
  };
  return {of(usable_.low), of(usable_.value), of(usable_.high)};
}

Range MemoryModel::budget_bytes(const Plan& plan) const {
  return budget_bytes(plan, fullest(plan).memory);
}

bool MemoryModel::fits(const Plan& plan) const {
  return fits_at(plan, serving_ ? asked(plan) : Load{});
}

}  // namespace trigon
