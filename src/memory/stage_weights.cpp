// Weights that a rank of a pipeline stage holds, and what stands around the layers.

#include <algorithm>
#include <cmath>

#include "memory/formulas.hpp"
#include "memory/memory_model.hpp"
#include "memory/stage_layers.hpp"
#include "plan/legality.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

WeightShare recurrent_share(const Layer& layer, int tensor, const ShareRules& rules) {
  Layer mixers;
  for (const SubLayer& part : layer.parts)
    if (std::holds_alternative<RecurrentMixer>(part)) mixers.parts.push_back(part);
  return mixers.parts.empty() ? WeightShare{} : share_of(mixers, tensor, rules).dense;
}

// Recipes for NVFP4 leave the matrices of recurrent mixers as they are (vllm-project/llm-compressor
// pulls 2482 and 2740; NVIDIA/Model-Optimizer pull 681).
void keep_matrices(WeightShare& all, const WeightShare& some) {
  all.matrix_bytes -= some.matrix_bytes;
  all.matrix_parameters -= some.matrix_parameters;
  all.kept_bytes += some.matrix_bytes;
  all.kept_parameters += some.matrix_parameters;
}

// Cosines and sines of every position in 16 bit.
double rotary_table_bytes(const Stack& s) {
  if (s.positions || s.relative_positions || !s.max_context) return 0;
  for (const LayerRun& run : s.runs)
    for (const SubLayer& part : run.layer.parts) {
      if (auto a = std::get_if<Attention>(&part)) return 2 * d(*s.max_context) * d(a->head_dim);
      if (auto l = std::get_if<LatentAttention>(&part))
        return 2 * d(*s.max_context) * d(l->rope_dim);
    }
  return 0;
}

}  // namespace

// The kinds of a model's layers for multi-token prediction, which the last stage holds.
void MemoryModel::take_drafts(const Model& model) {
  for (const Component& c : model.components) {
    auto draft = std::get_if<Stack>(&c.body);
    if (!draft || c.role != ComponentRole::draft || draft->runs.empty()) continue;
    const Layer& layer = draft->runs.front().layer;
    std::size_t k = 0;
    while (k < kinds_.size() && !(kind_stacks_[k] == stack_ && same_layer(*kinds_[k], layer))) ++k;
    if (k == kinds_.size()) {
      kinds_.push_back(&layer);
      kind_stacks_.push_back(stack_);
      kind_shared_.push_back(0);
      caches_.push_back({});
    }
    draft_kind_ = k;
    draft_layers_ = draft->layers();
  }
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
    if (plan.weights == Format::nvfp4 && bits > 0)
      keep_matrices(dense,
                    recurrent_share(*kinds_[k], plan.tensor, rules_).times(layers.stored(k)));
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
  auto as_matrix = [](WeightShare w) {
    w.matrix_parameters += w.kept_parameters;
    w.matrix_bytes += w.kept_bytes;
    w.kept_bytes = w.kept_parameters = 0;
    return w;
  };
  // A quantiser to GGUF converts embedding and head too; others leave them.
  auto ends = [&](const WeightShare& w) {
    return bits > 0 && info(plan.weights).gguf ? as_matrix(w) : w;
  };
  const bool first = stage == 0, last = stage == plan.pipeline - 1;
  double embedding = 0, head = 0;
  if (first && !engine_.embedding_on_host) {
    dense += ends(end.embedding);
    embedding = ends(end.embedding).bytes(bits);
  }
  // Servers load the vision tower beside the first layers.
  if (first && serving_) {
    dense.kept_bytes += tower_bytes_ / std::max(plan.tensor, 1);
    dense.kept_parameters += tower_parameters_ / std::max(plan.tensor, 1);
  }
  if (serving_ && engine_.rotary_table) dense.kept_bytes += rotary_table_bytes(*stack_);
  // A tied head is the embedding itself where both lie on the same device.
  const bool copied = !serving_ && engine_.eager.separate_head;
  const bool shared =
      stack_->tied && !stack_->head && first && !engine_.embedding_on_host && !copied;
  if (last && !shared) {
    WeightShare share = ends(end.head);
    const bool packed = serving_ ? bits > 0 && engine_.quantises_head && weight_only(plan)
                                 : quantised_base_ && engine_.eager.quantised_head;
    if (packed) share = as_matrix(share);
    dense += share;
    head = share.bytes(bits);
  }
  if (last && draft_layers_ > 0) {
    // Each reads the hidden state and the embedding of the next token, joined by a projection
    // (DeepSeek-V3, arXiv:2412.19437, section 2.2); the table is there once more unless the stage
    // has it.
    WeightShare joined = share_of(Linear{2 * stack_->hidden, stack_->hidden}, 1, rules_);
    dense += joined.times(d(draft_layers_) / std::max(plan.tensor, 1));
    if (!first && !stack_->tied) dense += ends(end.embedding);
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
  if (by_ggml()) return ggml_weights(plan, stage).on_card;
  WeightShare experts;
  WeightShare dense = stage_weights(plan, stage, &experts, quiet);
  const double bits = weight_bits(plan);
  return dense.bytes(bits) + experts.bytes(bits);
}

}  // namespace trigon
