// What a rank holds while it serves: weights, caches, the peak of one step, the runtime.

#include <algorithm>
#include <cmath>

#include "memory/compute_buffer.hpp"
#include "memory/formulas.hpp"
#include "memory/memory_model.hpp"
#include "memory/stage_layers.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

double whole_blocks(double tokens, double block) {
  return block > 1 ? std::ceil(tokens / block) * block : tokens;
}

}  // namespace

// Tokens of all sequences that one layer keeps.
double MemoryModel::kept_tokens(const CacheShare& cache, const Load& load) const {
  const double block = d(engine_.block_tokens);
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

double MemoryModel::cache_of(const Plan& plan, int stage, const Load& load) const {
  const FormatInfo& format = info(plan.kv);
  const double bits = bits_per_element(plan.kv);
  const StageLayers layers = stage_layers(plan, stage);
  double total = 0;
  KindShare scratch;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    double n = layers.count(k);
    if (n == 0) continue;
    const CacheShare& c = kind_at(k, plan.tensor, scratch).cache;
    total +=
        n * (kept_tokens(c, load) * c.bytes_per_token(bits, d(format.block_elements), format.gguf) +
             load.sequences * c.bytes_per_sequence(bits));
    if (c.source_heads > 0)
      total += n * load.sequences * whole_blocks(load.source, d(engine_.block_tokens)) *
               c.source_bytes_per_token(bits, d(format.block_elements), format.gguf);
  }
  return total;
}

double MemoryModel::cache_bytes(const Plan& plan, int stage, double sequences,
                                double context) const {
  return cache_of(plan, stage, {sequences, context, context, stacks_.size() > 1 ? context : 0});
}

template <class Recorder>
RankMemory MemoryModel::serving_memory(const Plan& plan, int stage, const Load& load,
                                       Recorder& recorder) const {
  RankMemory m;
  WeightShare experts;
  const double bits = weight_bits(plan);
  WeightShare dense = stage_weights(plan, stage, &experts, recorder);
  m[MemoryTerm::weights] = dense.bytes(bits) + experts.bytes(bits);

  const double cache = cache_of(plan, stage, load);
  m[MemoryTerm::kv_cache] = cache;
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
         {"block", d(engine_.block_tokens), "tokens", engine_.fact_id("block_tokens")},
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
  if (engine_.compute_buffer) {
    ComputeBuffer buffer;
    buffer.micro_batch = d(engine_.micro_batch_tokens);
    buffer.keys =
        whole_blocks(load.sequences * std::max(load.context, load.source), d(engine_.block_tokens));
    buffer.flash_attention = engine_.flash_attention;
    buffer.input_copies = plan.pipeline > 1 ? engine_.pipeline_input_copies : 1;
    buffer.latent_expanded = engine_.latent_expanded && engine_.mla_absorbed;
    buffer.attention_chunk = engine_.attention_chunk.in_base();
    double largest = 0;
    bool windowed = false, full = false;
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      if (layers.count(k) > 0) {
        largest =
            std::max(largest, compute_buffer_layer(*kinds_[k], kind_stacks_[k]->hidden, buffer));
        (caches_[k].reach && engine_.windows == WindowAllocator::capped ? windowed : full) = true;
      }
    buffer.masks = windowed && full ? 2 : 1;
    const double head = last && stack_->generates
                            ? compute_buffer_head(stack_->hidden, stack_->vocabulary, buffer)
                            : 0;
    const double whole = compute_buffer_bytes(largest, head, stack_->hidden, buffer);
    const double without_head = compute_buffer_bytes(largest, 0, stack_->hidden, buffer);
    m[MemoryTerm::activations] = without_head;
    m[MemoryTerm::logits] = whole - without_head;
    recorder.step([&] {
      return DerivationStep{
          &memory_formula::compute_buffer,
          whole,
          "B",
          "stage " + std::to_string(stage),
          {{"micro_batch", buffer.micro_batch, "tokens", engine_.fact_id("micro_batch_tokens")},
           {"keys", buffer.keys, "tokens"},
           {"inputs", whole - std::max(largest, head), "B"},
           {"layers", largest, "B"},
           {"head", head, "B"}}};
    });
  } else {
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
          peak = std::max(
              peak, fed * one + kept_tokens(s.cache, load) *
                                    s.cache.bytes_per_token(bits_per_element(plan.kv), 1, false));
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
  m[MemoryTerm::fragmentation] =
      engine_.fragmentation * (m[MemoryTerm::activations] + m[MemoryTerm::logits]);
  add_runtime(plan, m, recorder);
  return m;
}

template RankMemory MemoryModel::serving_memory(const Plan&, int, const Load&, NoRecord&) const;
template RankMemory MemoryModel::serving_memory(const Plan&, int, const Load&, Record&) const;

}  // namespace trigon
