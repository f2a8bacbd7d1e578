// The parts that the terms of a rank are summed from, layer kind by layer kind, as derivation
// steps.

#include <algorithm>
#include <cmath>

#include "memory/formulas.hpp"
#include "memory/memory_model.hpp"
#include "memory/stage_layers.hpp"
#include "plan/legality.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

const char* part_name(const SubLayer& part) {
  struct {
    const char* operator()(const Norm&) { return "norm"; }
    const char* operator()(const Attention&) { return "attention"; }
    const char* operator()(const LatentAttention&) { return "latent attention"; }
    const char* operator()(const CrossAttention&) { return "cross-attention"; }
    const char* operator()(const CompressedAttention&) { return "compressed attention"; }
    const char* operator()(const RecurrentMixer&) { return "recurrent mixer"; }
    const char* operator()(const StreamMixer&) { return "stream mixer"; }
    const char* operator()(const Mlp&) { return "MLP"; }
    const char* operator()(const MixtureOfExperts&) { return "experts"; }
  } name;
  return std::visit(name, part);
}

// "32 layers of attention + MLP", "21 layers of attention + MLP, window 4096".
std::string describe(const Layer& layer, const CacheRun& cache, double count) {
  std::string parts;
  for (const SubLayer& part : layer.parts) {
    if (std::holds_alternative<Norm>(part)) continue;
    parts += (parts.empty() ? "" : " + ") + std::string(part_name(part));
  }
  std::string out = std::to_string(static_cast<std::int64_t>(count)) + " layers of " + parts;
  if (cache.reach) out += ", window " + std::to_string(*cache.reach);
  return out;
}

}  // namespace

void MemoryModel::explain_weights(const Plan& plan, int stage, Record& record) const {
  const StageLayers layers = stage_layers(plan, stage);
  const double bits = serving_ || tuning_ ? weight_bits(plan) : 0;
  KindShare scratch;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (layers.count(k) == 0) continue;
    const KindShare& s = kind_at(k, plan.tensor, scratch);
    const WeightShare &dense = s.weights.dense, &experts = s.weights.experts;
    const double on_rank = s.weights.expert_count > 0
                               ? std::ceil(s.weights.expert_count / std::max(plan.expert, 1)) /
                                     expert_tensor_ranks(plan, serving_)
                               : 0;
    const double expert =
        s.weights.expert_count > 0 ? experts.bytes(bits) / s.weights.expert_count : 0;
    if (by_ggml()) {
      explain_ggml_weights(plan, stage, k, describe(*kinds_[k], caches_[k], layers.count(k)),
                           record);
      continue;
    }
    record.step([&] {
      return DerivationStep{
          &memory_formula::layer_weights,
          layers.stored(k) * dense.bytes(bits) + layers.count(k) * on_rank * expert,
          "B",
          describe(*kinds_[k], caches_[k], layers.count(k)),
          {{"sets", layers.stored(k), ""},
           {"kept", dense.kept_bytes, "B"},
           {"matrices", dense.bytes(bits) - dense.kept_bytes, "B"},
           {"layers", layers.count(k), ""},
           {"experts", on_rank, ""},
           {"expert", expert, "B"}}};
    });
  }
}

void MemoryModel::explain_cache(const Plan& plan, int stage, const Load& load,
                                Record& record) const {
  const FormatInfo& format = info(plan.kv);
  const Format values = plan.kv_values == Format::unknown ? plan.kv : plan.kv_values;
  const double bits = bits_per_element(plan.kv);
  const StageLayers layers = stage_layers(plan, stage);
  KindShare scratch;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const CacheShare& c = kind_at(k, plan.tensor, scratch).cache;
    const double page = page_tokens(plan), tokens = kept_tokens(c, load, page);
    const double token = c.bytes_per_token(plan.kv, values);
    const double sequence = state_slot_bytes(plan, page, c);
    if (layers.count(k) == 0 || (token <= 0 && sequence <= 0)) continue;
    record.step([&] {
      return DerivationStep{&memory_formula::layer_cache,
                            layers.count(k) * (tokens * token + load.sequences * sequence),
                            "B",
                            describe(*kinds_[k], caches_[k], layers.count(k)),
                            {{"layers", layers.count(k), ""},
                             {"tokens", tokens, "tokens"},
                             {"token", token, "B"},
                             {"sequences", load.sequences, ""},
                             {"state", sequence, "B"}}};
    });
    // Whole blocks, side caches and compressed entries have more to them than this product.
    if (token > 0 && !format.gguf && values == plan.kv && c.side_bytes <= 0 && c.ratio == 1)
      record.step([&] {
        return DerivationStep{&memory_formula::cache_token,
                              token,
                              "B",
                              "one token of one layer",
                              {{"heads", c.heads, ""},
                               {"key", c.key_head, ""},
                               {"value", c.value_head, ""},
                               {"bits", bits, ""}}};
      });
  }
}

void MemoryModel::explain_saved(const Plan& plan, int stage, Record& record) const {
  const StageLayers layers = stage_layers(plan, stage);
  const bool scattered = plan.sequence_parallel;
  const double scale = activation_element(plan) / 2;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (layers.count(k) == 0) continue;
    const Stack& stack = *kind_stacks_[k];
    ActivationRules rules = activation_rules(k, plan.tensor);
    rules.sequence_parallel = scattered;
    const double keys =
        d(positions_of(stack, static_cast<std::int64_t>(&stack == stack_ ? sequence_ : source_)));
    for (const SubLayer& part : kinds_[k]->parts) {
      Layer alone = *kinds_[k];
      alone.parts = {part};
      const bool selective = plan.recompute == Recompute::selective;
      ActivationBytes b = selective ? saved_selective(alone, stack.hidden, rules)
                                    : saved_for_backward(alone, stack.hidden, rules);
      const ExpertBytes routed = selective ? experts_saved_selective(alone, stack.hidden, rules)
                                           : experts_saved(alone, stack.hidden, rules);
      b.per_token += routed.at(expert_tensor_ranks(plan, false), std::max(plan.tensor, 1));
      if (b.at(keys) <= 0) continue;
      record.step([&] {
        return DerivationStep{&memory_formula::saved_part,
                              scale * b.at(keys),
                              "B/token",
                              std::string(part_name(part)) + " of one layer",
                              {{"width", scale * b.per_token, "B"},
                               {"keys", keys, "tokens"},
                               {"scores", scale * b.per_token_and_key, "B"}}};
      });
    }
  }
}

}  // namespace trigon
