#include "decide/switches.hpp"

#include <algorithm>

#include "decide/messages.hpp"

namespace trigon {
namespace {

using M = DecideMessage;

Error refusal(Message what, const char* flag, std::optional<Message> hint = std::nullopt) {
  return {ErrorCode::unsupported, std::move(what), flag, std::move(hint)};
}

}  // namespace

std::optional<Error> refused_switches(const EnginePolicy& engine, const PlanRequest& asked,
                                      bool training) {
  // Paged attention works on blocks of the cache and never has all scores.
  if (asked.flash_attention == false && !training && engine.pool != PoolRule::none)
    return refusal(message(M::no_scores_to_keep, engine.id), "--flash-attention");
  if (asked.chunk_tokens &&
      (training || engine.micro_batch_tokens + engine.max_batched_tokens == 0))
    return refusal(message(M::no_token_budget, engine.id), "--max-num-batched-tokens",
                   message(M::try_flags, training ? "--micro-batch" : "--concurrency"));
  if (asked.max_sequences && (training || engine.max_sequences == 0))
    return refusal(message(M::no_sequence_limit, engine.id), "--max-num-seqs",
                   message(M::try_flags, training ? "--micro-batch" : "--concurrency"));
  if (asked.pool_tokens && (training || !engine.pool_tokens_option))
    return refusal(message(M::no_pool_limit, engine.id), "--kv-cache-tokens",
                   training ? std::nullopt
                            : std::optional(message(M::try_flags, engine.pool == PoolRule::none
                                                                      ? "--context"
                                                                      : "--memory-fraction")));
  const char* of_ik = asked.latent_mode             ? "--mla"
                      : asked.attention_chunk_bytes ? "--attention-max-batch"
                      : asked.fused_experts         ? "--fused-moe"
                                                    : nullptr;
  if (of_ik && (training || !engine.latent_expanded))
    return refusal(message(M::switch_of_another_engine, of_ik, engine.id), of_ik,
                   message(M::try_flags, "--engine ik_llama.cpp"));
  if (asked.attention_data.value_or(false)) {
    if (training || !engine.attention_data_parallel)
      return refusal(message(M::no_attention_data, engine.id), "--attention-dp",
                     message(M::try_flags, "--engine tensorrt-llm"));
    if (!asked.tensor)
      return refusal(message(M::attention_data_needs_ranks), "--attention-dp",
                     message(M::try_flags, "--tp 8"));
  }
  if (!training && asked.recipe)
    return refusal(message(M::only_training_has, "--recipe"), "--recipe",
                   message(M::try_flags, "--quant"));
  if (!training && asked.reference)
    return refusal(message(M::only_training_has, "--reference-model"), "--reference-model");
  if (!training && asked.loss_chunks)
    return refusal(message(M::only_training_has, "--loss-chunks"), "--loss-chunks");
  return std::nullopt;
}

void take_engine_switches(const PlanRequest& asked, EnginePolicy& engine) {
  if (asked.flash_attention) engine.flash_attention = *asked.flash_attention;
  // Compilers choose the layout of what they compile.
  if (asked.channels_first) engine.channels_first &= *asked.channels_first;
  if (asked.dropout) {
    engine.dropout_masks = *asked.dropout;
    engine.dropout_stated = true;
  }
  if (asked.deterministic) engine.deterministic = *asked.deterministic;
  if (asked.eight_bit_weights) engine.eight_bit_weights = *asked.eight_bit_weights;
  if (asked.trains_drafts) engine.trains_drafts = *asked.trains_drafts;
  if (asked.grouped_experts) engine.grouped_experts = *asked.grouped_experts;
  if (asked.recompute_modules) engine.selective = *asked.recompute_modules;
  if (asked.fused_loss.value_or(false) && engine.fused_loss_bytes_per_logit > 0)
    engine.loss_bytes_per_logit = engine.fused_loss_bytes_per_logit;
  if (asked.latent_mode) {
    engine.mla_absorbed = *asked.latent_mode > 0;
    engine.latent_mode = static_cast<int>(std::clamp<std::int64_t>(*asked.latent_mode, 0, 3));
  }
  if (asked.attention_chunk_bytes) engine.attention_chunk = bytes(*asked.attention_chunk_bytes);
  if (asked.fused_experts) engine.fused_experts = *asked.fused_experts;
  if (asked.attention_data.value_or(false))
    engine.attention_ranks = std::max(1, asked.tensor.value_or(1));
  if (asked.chunk_tokens && engine.micro_batch_tokens > 0)
    engine.micro_batch_tokens = *asked.chunk_tokens;
  else if (asked.chunk_tokens && engine.max_batched_tokens > 0)
    engine.max_batched_tokens = *asked.chunk_tokens;
  auto limit = [](std::int64_t n) { return n > 0 ? n : -1; };
  if (asked.media_images) engine.media_images = limit(*asked.media_images);
  if (asked.media_films) engine.media_films = limit(*asked.media_films);
  if (asked.max_sequences) engine.max_sequences = *asked.max_sequences;
  if (asked.pool_tokens) engine.pool_tokens = *asked.pool_tokens;
  if (asked.loss_chunks) engine.loss_chunks = *asked.loss_chunks;
  if (asked.captured_graphs) engine.captured_graphs = asked.captured_graphs;
}

}  // namespace trigon
