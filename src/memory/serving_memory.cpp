// What a rank holds while it serves: weights, caches, the peak of one step, the runtime.

#include <algorithm>
#include <cmath>

#include "memory/formulas.hpp"
#include "memory/memory_model.hpp"
#include "memory/stage_layers.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

}  // namespace

// Bytes that one token takes in a layer of attention, the most of all kinds.
double MemoryModel::widest_token_bytes(const Plan& plan) const {
  double most = 0;
  KindShare scratch;
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    most = std::max(most, kind_at(k, plan.tensor, scratch).cache.bytes_per_token(plan.kv, plan.kv));
  return most;
}

// Tokens of a page. An allocator with pages of one size for all layers makes those of attention
// large enough for the state of a recurrent layer
// (vllm/model_executor/models/config.py, HybridAttentionMambaModelConfig).
double MemoryModel::page_tokens(const Plan& plan) const {
  const double block = d(engine_.block_tokens);
  if (engine_.state_page_alignment <= 0) return block;
  double state = 0;
  KindShare scratch;
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    state = std::max(state, kind_at(k, plan.tensor, scratch).cache.state_bytes);
  const double token = state > 0 ? widest_token_bytes(plan) : 0;
  if (token <= 0) return block;
  return std::max(block, whole_blocks(state / token, d(engine_.state_page_alignment)));
}

// A state takes a whole page where pages have one size.
double MemoryModel::state_slot_bytes(const Plan& plan, double page, const CacheShare& cache) const {
  const double own = cache.bytes_per_sequence(bits_per_element(plan.kv));
  if (cache.state_bytes <= 0 || engine_.state_page_alignment <= 0) return own;
  return own - cache.state_bytes + std::max(cache.state_bytes, page * widest_token_bytes(plan));
}

// Tokens of all sequences that one layer keeps.
double MemoryModel::kept_tokens(const CacheShare& cache, const Load& load, double block) const {
  double kept = load.context;
  if (cache.reach > 0 && engine_.windows == WindowAllocator::capped)
    kept = std::min(kept, cache.reach);
  double tokens = load.sequences * whole_blocks(kept, block);
  // ggml keeps one micro-batch beside the windows.
  if (engine_.compute_buffer && kept < load.context)
    tokens = std::min(load.sequences * whole_blocks(load.context, block),
                      tokens + d(engine_.micro_batch_tokens));
  return tokens;
}

// Of one layer of a kind.
double MemoryModel::layer_cache(std::size_t kind, const Plan& plan, const Load& load) const {
  KindShare scratch;
  const CacheShare& c = kind_at(kind, plan.tensor, scratch).cache;
  const Format values = plan.kv_values == Format::unknown ? plan.kv : plan.kv_values;
  const double page = page_tokens(plan);
  double bytes = kept_tokens(c, load, page) * c.bytes_per_token(plan.kv, values) +
                 load.sequences * state_slot_bytes(plan, page, c);
  if (c.source_heads > 0)
    bytes += load.sequences * whole_blocks(load.source, page) *
             c.source_bytes_per_token(plan.kv, values);
  return bytes;
}

double MemoryModel::cache_of(const Plan& plan, int stage, const Load& load) const {
  const StageLayers layers = stage_layers(plan, stage);
  double total = 0;
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    if (const double n = layers.count(k); n > 0) total += n * layer_cache(k, plan, load);
  return total;
}

double MemoryModel::cache_bytes(const Plan& plan, int stage, double sequences,
                                double context) const {
  return cache_of(plan, stage, {sequences, context, context, stacks_.size() > 1 ? context : 0});
}

// Weight-only formats: where a matrix meets many rows it is unpacked to be multiplied; kernels that
// hold their scratch all the time have it for the largest matrix and the widest layer.
double MemoryModel::unpacked_bytes(const Plan& plan, int stage) const {
  if (!weight_only(plan)) return 0;
  const StageLayers layers = stage_layers(plan, stage);
  double largest = 0, widest = 0;
  KindShare scratch;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (layers.count(k) == 0) continue;
    largest = std::max(largest, kind_at(k, plan.tensor, scratch).weights.largest_matrix);
    for (const SubLayer& part : kinds_[k]->parts)
      if (auto mlp = std::get_if<Mlp>(&part))
        widest = std::max(widest, d(mlp->width) / plan.tensor);
  }
  if (engine_.quantises_head && stage == plan.pipeline - 1)
    largest = std::max(largest, d(stack_->hidden) * d(stack_->vocabulary) / plan.tensor);
  return engine_.unpacked_bytes * largest +
         2 * d(engine_.unpacked_rows) * std::max(widest, d(stack_->hidden));
}

template <class Recorder>
RankMemory MemoryModel::serving_memory(const Plan& plan, int stage, const Load& load,
                                       Recorder& recorder) const {
  if (by_ggml()) return ggml_memory(plan, stage, load, recorder);
  RankMemory m;
  WeightShare experts;
  const double bits = weight_bits(plan);
  WeightShare dense = stage_weights(plan, stage, &experts, recorder);
  m[MemoryTerm::weights] = dense.bytes(bits) + experts.bytes(bits);

  const double cache = cache_of(plan, stage, load);
  m[MemoryTerm::kv_cache] = cache;
  m.cached_tokens = load.sequences * whole_pages(load.context, load.source, page_tokens(plan));
  if constexpr (Recorder::on) explain_cache(plan, stage, load, recorder);
  recorder.step([&] {
    return DerivationStep{
        &memory_formula::kv_cache,
        cache,
        "B",
        "stage " + std::to_string(stage),
        {{"sequences", load.sequences, ""},
         {"bytes_per_sequence", load.sequences > 0 ? cache / load.sequences : 0, "B"},
         {"context", load.context, "tokens"},
         {"block", page_tokens(plan), "tokens", engine_.fact_id("block_tokens")},
         {"bits", bits_per_element(plan.kv), ""}}};
  });

  // One step: as many tokens as the budget allows, or every prompt at once.
  const bool pool = engine_.pool != PoolRule::none;
  double tokens = load.sequences * load.prompt;
  if (engine_.max_batched_tokens > 0) {
    double budget = d(engine_.max_batched_tokens);
    if (!engine_.chunked_prefill) budget = std::max({budget, load.context, load.source});
    tokens = pool ? budget : std::min(tokens, budget);
  }
  const double element = activation_element(plan), scale = element / 2;
  const double h = d(stack_->hidden);
  const StageLayers layers = stage_layers(plan, stage);
  const bool last = stage == plan.pipeline - 1;
  {
    double peak = 0;
    KindShare scratch;
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      if (layers.count(k) > 0) {
        const KindShare& s = kind_at(k, plan.tensor, scratch);
        double one =
            s.forward[plan.sequence_parallel ? 1 : 0].at(std::max(load.context, load.source)) *
            scale;
        // A decoder behind an encoder starts from one token a sequence.
        const double fed = load.source > 0 && kind_stacks_[k] == stack_ ? load.sequences : tokens;
        peak = std::max(peak, fed * one);
        // A cache that grows by copying holds one layer twice.
        if (engine_.concatenated_cache)
          peak = std::max(peak, fed * one + kept_tokens(s.cache, load, page_tokens(plan)) *
                                                s.cache.bytes_per_token(plan.kv, plan.kv));
      }
    peak += tokens * engine_.hidden_copies * h * element;
    double rows = 0;
    if (last && stack_->generates) {
      if (engine_.logits == LogitsRows::all_tokens)
        rows = load.sequences * (load.source > 0 ? 1 : load.prompt);
      else
        // A pool is sized by a run with as many sequences as the engine ever batches.
        rows = pool && engine_.max_sequences > 0 ? d(engine_.max_sequences) : load.sequences;
    }
    const double logits =
        rows * d(stack_->vocabulary) * static_cast<double>(engine_.logits_bytes_per_value);
    // The head runs when the layers are done: their peaks do not add, only what stays alive does.
    const double around = std::min(peak, tokens * (2 + engine_.hidden_copies) * h * element);
    if (logits + around > peak) {
      m[MemoryTerm::activations] = around;
      m[MemoryTerm::logits] = logits;
    } else {
      m[MemoryTerm::activations] = peak;
    }
    // Images run before the rest of the profile; what they gave stays through it.
    if (tower_ && stage == 0)
      m[MemoryTerm::media] = media_bytes(
          plan, load, tokens, m[MemoryTerm::activations] + m[MemoryTerm::logits], recorder);
    recorder.step([&] {
      return DerivationStep{
          &memory_formula::forward_peak,
          peak,
          "B",
          "stage " + std::to_string(stage),
          {{"tokens", tokens, "tokens",
            engine_.max_batched_tokens > 0 ? engine_.fact_id("max_batched_tokens") : ""},
           {"layer_peak", tokens > 0 ? peak / tokens - engine_.hidden_copies * h * element : 0,
            "B/token"},
           {"copies", engine_.hidden_copies, ""},
           {"hidden", h, ""},
           {"element", element, "B"}}};
    });
    recorder.step([&] {
      return DerivationStep{&memory_formula::logits,
                            logits,
                            "B",
                            "stage " + std::to_string(stage),
                            {{"rows", rows, ""},
                             {"vocabulary", d(stack_->vocabulary), ""},
                             {"value_bytes", static_cast<double>(engine_.logits_bytes_per_value),
                              "B", engine_.fact_id("logits_bytes_per_value")}}};
    });
  }
  if (engine_.whole_cache_copied) m[MemoryTerm::activations] += cache;
  m[MemoryTerm::gathered] = unpacked_bytes(plan, stage);
  m[MemoryTerm::fragmentation] =
      engine_.fragmentation * (m[MemoryTerm::activations] + m[MemoryTerm::logits]);
  add_runtime(plan, m, recorder);
  return m;
}

template RankMemory MemoryModel::serving_memory(const Plan&, int, const Load&, NoRecord&) const;
template RankMemory MemoryModel::serving_memory(const Plan&, int, const Load&, Record&) const;

}  // namespace trigon
