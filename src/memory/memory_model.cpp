#include "memory/memory_model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "memory/formulas.hpp"
#include "memory/saved_eager.hpp"
#include "memory/stage_layers.hpp"
#include "plan/legality.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

// Models with gates are trained without it.
bool trains_with_dropout(const Layer& layer, const EnginePolicy& engine) {
  if (engine.dropout_stated || !engine.dropout_masks) return engine.dropout_masks;
  for (const SubLayer& part : layer.parts) {
    if (auto mlp = std::get_if<Mlp>(&part); mlp && !mlp->gated) return true;
    if (auto experts = std::get_if<MixtureOfExperts>(&part); experts && !experts->gated)
      return true;
  }
  return false;
}

bool caches_latent(const std::vector<const Stack*>& stacks) {
  for (const Stack* s : stacks)
    for (const LayerRun& run : s->runs)
      for (const SubLayer& part : run.layer.parts)
        if (std::holds_alternative<LatentAttention>(part)) return true;
  return false;
}

constexpr int kPreparedDegrees = 8;  // 1, 2, 4 ... 128; others are computed when asked

}  // namespace

Result<MemoryModel> MemoryModel::prepare(const Model& model, const Job& job, const Cluster& cluster,
                                         const EnginePolicy& engine, Range usable) {
  MemoryModel m;
  m.stack_ = language_stack(model);
  if (!m.stack_) m.graphs_ = graph_parts(model, engine, job);
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
  m.per_node_ = std::max(1, cluster.per_node);
  if (cluster.accelerator) m.capability_ = cluster.accelerator->compute_capability.value_or(0);
  // NCCL opens 24 channels over NVLink of the A100 and H100, 2 over PCIe (its start-up logs).
  m.channels_ = cluster.intra.topology == PeerTopology::none ? 2 : 24;
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
    m.form_ = tune->form;
  }
  m.source_ = d(training_source(job));
  if (m.engine_.latent_block_tokens > 0 && m.engine_.mla_absorbed && caches_latent(m.stacks_))
    m.engine_.block_tokens = m.engine_.latent_block_tokens;
  m.rules_ = {
      m.main_format_, m.tuning_, m.targets_, m.engine_.mla_absorbed,
      m.engine_.mla_absorbed && (m.engine_.latent_values_cached ||
                                 (m.engine_.latent_mode == 1 && !m.engine_.flash_attention))};
  if (m.graphs()) return m;

  for (const Component& c : model.components)
    if (auto tower = std::get_if<Stack>(&c.body); tower && c.role == ComponentRole::vision_tower) {
      m.tower_bytes_ += d(trigon::weight_bytes(*tower).value());
      m.tower_parameters_ += d(count_parameters(*tower).total);
      if (tower->media && tower->media->tokens > 0 && tower->media->patches > 0) m.tower_ = tower;
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
  if (!m.serving_ && m.engine_.trains_drafts) m.take_drafts(model);
  const std::size_t kinds = m.kinds_.size();
  m.kind_counts_.resize(static_cast<std::size_t>(m.layers_ + 1) * kinds);
  std::size_t layer = 0, run = 0;
  for (const Stack* stack : m.stacks_)
    for (std::size_t i = 0; i < stack->runs.size(); ++i, ++run)
      for (std::int64_t c = 0; c < stack->runs[i].count; ++c, ++layer)
        for (std::size_t k = 0; k < kinds; ++k)
          m.kind_counts_[(layer + 1) * kinds + k] = static_cast<std::uint16_t>(
              m.kind_counts_[layer * kinds + k] + (kind_of_run[run] == k ? 1 : 0));
  for (const Layer* kind : m.kinds_)
    m.dropout_ = m.dropout_ || trains_with_dropout(*kind, m.engine_);
  for (int i = 0; i < kPreparedDegrees && (i == 0 || 1 << i <= m.most_ranks_); ++i) {
    for (std::size_t k = 0; k < kinds; ++k) m.shares_.push_back(m.kind_share(k, 1 << i));
    m.ends_.push_back(m.end_share(m.engine_.attention_ranks > 1 ? 1 : 1 << i));
  }
  if (m.by_ggml()) m.totals_ = m.totals();
  if (m.by_ggml()) m.take_repacked(cluster);
  if (m.by_ggml() && m.engine_.row_split != RowSplit::never)
    for (std::size_t k = 0; k < kinds; ++k) m.split_matrices_.push_back(m.split_matrices(k));
  return m;
}

ActivationRules MemoryModel::activation_rules(std::size_t kind, int tensor) const {
  ActivationRules r;
  r.autograd = engine_.autograd;
  r.flash_attention = engine_.flash_attention;
  r.attention_output_copy = engine_.attention_output_copy &&
                            (capability_ < 9 || (engine_.deterministic && capability_ >= 10));
  r.selective = engine_.selective;
  r.tensor = tensor;
  r.frozen = tuning_;
  r.targets = targets_;
  r.form = form_;
  r.adapter_rank = form_.parameters > 0 ? 0 : adapter_rank_;
  r.dora = dora_;
  r.quantised = quantised_base_;
  r.eager = engine_.eager;
  r.dropout = trains_with_dropout(*kinds_[kind], engine_);
  int norms = 0;
  for (const SubLayer& part : kinds_[kind]->parts)
    if (std::holds_alternative<Norm>(part)) ++norms;
  r.one_input = kinds_[kind]->parallel_residual && norms == 1;
  return r;
}

// What a sequence keeps, on the mean over `ranks` of which one has it.
static CacheShare dealt(CacheShare c, int ranks) {
  c.heads /= ranks;
  c.source_heads /= ranks;
  c.side_bytes /= ranks;
  c.sequence_elements /= ranks;
  c.state_bytes /= ranks;
  return c;
}

MemoryModel::KindShare MemoryModel::kind_share(std::size_t kind, int tensor) const {
  const Layer& layer = *kinds_[kind];
  const std::int64_t hidden = kind_stacks_[kind]->hidden;
  KindShare s;
  // Ranks that divide sequences hold what they share whole, and the caches of their own.
  const int divided = engine_.attention_ranks > 1 ? 1 : tensor;
  s.weights = share_of(layer, divided, rules_);
  s.cache = cache_share(layer, caches_[kind], divided, rules_);
  if (divided < tensor) s.cache = dealt(s.cache, tensor);
  ActivationRules r = activation_rules(kind, tensor);
  s.experts = {experts_saved(layer, hidden, r), experts_saved_selective(layer, hidden, r), {}};
  for (int sp = 0; sp < 2; ++sp) {
    r.sequence_parallel = sp == 1;
    auto i = static_cast<std::size_t>(sp);
    s.forward[i] = forward_peak(layer, hidden, r);
    if (serving_) continue;
    s.saved[i][0] = saved_for_backward(layer, hidden, r);
    if (r.autograd == Autograd::eager) s.backward[i] = eager_backward(layer, hidden, r);
    s.saved[i][1] = saved_selective(layer, hidden, r);
    s.saved[i][2] = saved_full_recompute(hidden, r);
  }
  return s;
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

// Whether matrices are stored in fewer bits than they are multiplied in.
bool MemoryModel::weight_only(const Plan& plan) const {
  const FormatInfo& f = info(plan.weights);
  return f.weight_only && !f.gguf;
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

// What captured graphs of decode steps hold on one rank: nodes and their arguments, by the layers
// that write tokens and the number of captured batches; batches beyond twice the sequences are not
// captured.
double MemoryModel::graph_bytes(const Plan& plan) const {
  const double per_layer = engine_.graph_per_layer.in_base();
  if (per_layer <= 0) return engine_.graph_overhead.in_base();
  double captured = 0;
  for (std::int64_t batch : engine_.capture_batches)
    if (engine_.max_sequences <= 0 || batch <= 2 * engine_.max_sequences) ++captured;
  if (engine_.captured_graphs) captured = d(*engine_.captured_graphs);
  const double layers =
      std::ceil(static_cast<double>(stack_ ? stack_->layers() : 0) / std::max(1, plan.pipeline));
  return engine_.graph_overhead.in_base() + captured * layers * per_layer;
}

// Receive buffers of one rank. A channel keeps, for every peer it hears from, a buffer for each of
// NCCL's three protocols (src/include/device.h, src/init.cc: 4 MiB, 4,915,200 and 524,288 bytes);
// it hears from one peer in the ring and, in its two trees, from 2 (n - 1) / n on average.
// Check: 24 channels between two A100 462 MB, between eight 636 MB; NVIDIA/nccl issue 964 measured
// 544 and 688.
double MemoryModel::collective_bytes(int ranks) const {
  if (ranks <= 1 || engine_.collective_overhead <= Bytes{}) return 0;
  constexpr double kBuffers = 4194304.0 + 4915200.0 + 524288.0;
  return channels_ * (1 + 2 * (ranks - 1.0) / ranks) * kBuffers;
}

template <class Recorder>
void MemoryModel::add_runtime(const Plan& plan, RankMemory& m, Recorder& recorder) const {
  const int ranks = serving_ ? plan.tensor * plan.pipeline : plan.ranks();
  m[MemoryTerm::context] = engine_.context_overhead.in_base();
  m[MemoryTerm::collectives] = collective_bytes(ranks);
  m[MemoryTerm::libraries] = engine_.library_overhead.in_base();
  m[MemoryTerm::graphs] = serving_ && engine_.launch == Launch::graphs ? graph_bytes(plan) : 0;
  recorder.step([&] {
    return DerivationStep{
        &memory_formula::runtime,
        m[MemoryTerm::context] + m[MemoryTerm::libraries] + m[MemoryTerm::collectives] +
            m[MemoryTerm::graphs],
        "B",
        "rank",
        {{"context", m[MemoryTerm::context], "B", engine_.fact_id("context_mib")},
         {"libraries", m[MemoryTerm::libraries], "B", engine_.fact_id("libraries_mib")},
         {"collectives", m[MemoryTerm::collectives], "B", engine_.fact_id("collectives_mib")},
         {"graphs", m[MemoryTerm::graphs], "B", engine_.fact_id("graphs_mib")}}};
  });
}

template void MemoryModel::add_runtime(const Plan&, RankMemory&, NoRecord&) const;
template void MemoryModel::add_runtime(const Plan&, RankMemory&, Record&) const;

template <class Recorder>
void MemoryModel::add_host(const Plan& plan, RankMemory& m, Recorder& recorder) const {
  const double states = m.host.states, activations = m.host.activations;
  if (states + activations <= 0) return;
  const double ranks = std::clamp(plan.ranks(), 1, per_node_);
  m.host.states *= ranks;
  m.host.activations *= ranks;
  recorder.step([&] {
    return DerivationStep{
        &memory_formula::offloaded,
        m.host.total(),
        "B",
        "host memory",
        {{"states", states, "B"}, {"activations", activations, "B"}, {"ranks_of_node", ranks, ""}}};
  });
}

template void MemoryModel::add_host(const Plan&, RankMemory&, NoRecord&) const;
template void MemoryModel::add_host(const Plan&, RankMemory&, Record&) const;

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
//   granted share:   kv <= share * (f * total - rest)
//   static fraction: weights + kv <= f * (total - context and communicators), and everything <=
//                    total; f may follow from what the engine reserves, in thousandths
// Where the pool is limited in tokens besides, the smaller pool holds; caches are as large a token
// as those of the load are. TensorRT-LLM rounds KvCacheConfig.max_tokens up to whole blocks
// (_torch/pyexecutor/resource_manager.py), SGLang its limit down (model_runner.py
// init_memory_pool).
Range MemoryModel::budget_bytes(const Plan& plan, const RankMemory& m) const {
  const double all = m.total(), kv = m[MemoryTerm::kv_cache];
  const double f = engine_.fraction(plan.tensor);
  // What is there before weights are loaded: a static fraction is one of that.
  const double before = m[MemoryTerm::context] + m[MemoryTerm::collectives];
  double most = std::numeric_limits<double>::infinity();
  if (serving_ && engine_.pool_tokens > 0 && m.cached_tokens > 0) {
    const double page = page_tokens(plan), pages = d(engine_.pool_tokens) / page;
    const double whole =
        engine_.pool == PoolRule::free_fraction ? std::ceil(pages) : std::floor(pages);
    most = all + kv * (whole * page / m.cached_tokens - 1);
  }
  auto of_rule = [&](double total) {
    if (!serving_) return total;
    switch (engine_.pool) {
      case PoolRule::none:
        return total;
      case PoolRule::total_fraction: {
        double outside = (engine_.graphs_inside_fraction ? 0 : m[MemoryTerm::graphs]) +
                         (engine_.context_inside_fraction ? 0 : m[MemoryTerm::context]) +
                         (engine_.collectives_inside_fraction ? 0 : m[MemoryTerm::collectives]);
        return std::min(total, f * total + outside - engine_.pool_margin.in_base());
      }
      case PoolRule::free_fraction:
        return std::min(total, f * total + (1 - f) * (all - kv));
      case PoolRule::granted_share:
        return std::min(total,
                        engine_.pool_share * f * total + (1 - engine_.pool_share) * (all - kv));
      case PoolRule::static_fraction: {
        double share = f;
        if (engine_.derives_fraction()) {
          const double kept =
              engine_.reserve(plan.tensor, plan.pipeline, Bytes::base(total)).in_base();
          share = std::clamp(std::round(1000 * (total - kept) / total) / 1000, 0.0, 1.0);
          share *= media_share();
        }
        return std::min(total, share * (total - before) + (all - kv - m[MemoryTerm::weights]));
      }
    }
    return total;
  };
  auto of = [&](double total) { return std::min(most, of_rule(total)); };
  return {of(usable_.low), of(usable_.value), of(usable_.high)};
}

Range MemoryModel::budget_bytes(const Plan& plan) const {
  return budget_bytes(plan, fullest(plan).memory);
}

bool MemoryModel::fits(const Plan& plan) const {
  return fits_at(plan, serving_ ? asked(plan) : Load{});
}

}  // namespace trigon
