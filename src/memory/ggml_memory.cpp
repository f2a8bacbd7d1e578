// What ggml (llama.cpp and its relatives) puts on each card and leaves in host memory.

#include <algorithm>
#include <cmath>

#include "memory/compute_buffer.hpp"
#include "memory/formulas.hpp"
#include "memory/ggml_bits.hpp"
#include "memory/memory_model.hpp"
#include "memory/stage_layers.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

}  // namespace

MemoryModel::Totals MemoryModel::totals() const {
  Totals t;
  KindShare scratch;
  const std::size_t all = static_cast<std::size_t>(layers_) * kinds_.size();
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const LayerShare& s = kind_at(k, 1, scratch).weights;
    const double n = kind_counts_[all + k];
    t.layers += s.dense.times(kind_shared_[k] ? std::min(n, 1.0) : n);
    t.experts += s.experts.times(n);
  }
  const EndShare& e = ends_.front();
  t.embedding = e.embedding;
  if (!stack_->tied || stack_->head) t.head = e.head;
  t.rest = e.rest;
  t.rest += e.before;
  return t;
}

MemoryModel::GgmlBits MemoryModel::ggml_bits(const Plan& plan) const {
  GgmlBits b;
  if (plan.mean_bits <= 0) {
    const double bits = weight_bits(plan);
    b.layers = b.experts = b.head = b.embedding = bits;
    b.as_stored = bits <= 0 && info(main_format_).gguf;
    return b;
  }
  const Totals& t = totals_;
  const bool known = plan.beside_experts != Format::unknown;
  const double beside = known ? bits_per_element(plan.beside_experts) : 0;
  double left = t.per_file() * plan.mean_bits;  // bits of the file
  const double vectors =
      32 * (t.layers.kept_parameters + t.experts.kept_parameters + t.rest.kept_parameters);
  left -= vectors;
  double matrices = t.layers.matrix_parameters + t.experts.matrix_parameters + t.head.parameters() +
                    t.embedding.parameters() + t.rest.matrix_parameters;
  const bool apart = known && t.experts.matrix_parameters > 0;
  auto take = [&](const WeightShare& w, bool end) {
    const double n = end ? w.parameters() : w.matrix_parameters;
    left -= n * beside;
    matrices -= n;
  };
  if (known) take(t.embedding, true);
  if (apart) {
    take(t.layers, false);
    take(t.head, true);
    take(t.rest, false);
  }
  const double others = matrices > 0 ? std::max(left, 0.0) / matrices : plan.mean_bits;
  b.experts = others;
  b.layers = b.head = apart ? beside : others;
  b.embedding = known ? beside : others;
  // A tied head is the embedding.
  if (stack_->tied && !stack_->head) b.head = b.embedding;
  return b;
}

MemoryModel::GgmlWeights MemoryModel::ggml_weights(const Plan& plan, int stage) const {
  const StageLayers layers = stage_layers(plan, stage);
  const GgmlBits bits = ggml_bits(plan);
  const LayerRange card = layers.on_card();
  const std::int64_t host = layers.on_host();
  const auto apart = std::clamp<std::int64_t>(plan.experts_on_host, 0, layers_);
  const LayerRange with_experts{std::clamp(apart, card.begin, card.end), card.end};
  const LayerRange without{0, std::max(apart, host)};
  GgmlWeights w;
  KindShare scratch;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const LayerShare& s = kind_at(k, 1, scratch).weights;
    const double one = bits.bytes(s.dense, bits.layers);
    const double experts = bits.bytes(s.experts, bits.experts);
    auto stored = [&](int n) { return kind_shared_[k] ? std::min(n, 1) : n; };
    w.on_card +=
        by_rows(plan) ? row_weights(plan, stage, k) : stored(layers.between(k, card)) * one;
    w.on_card += layers.between(k, with_experts) * experts;
    w.on_host += stored(layers.between(k, {0, host})) * one + layers.between(k, without) * experts;
  }
  const EndShare& e = ends_.front();
  const double embedding = bits.end_bytes(e.embedding, bits.embedding);
  const double head = bits.end_bytes(e.head, bits.head) + bits.bytes(e.rest, bits.layers);
  const bool tied = stack_->tied && !stack_->head;
  w.embedding = embedding;
  w.on_host += embedding + bits.bytes(e.before, bits.layers);
  if (!layers.head_on_card()) {
    w.on_host += head - (tied ? bits.end_bytes(e.head, bits.head) : 0);
  } else {
    if (layers.head_here()) w.head = head;
    if (by_rows(plan)) {
      const double matrix = bits.end_bytes(e.head, bits.head);
      w.head += head_rows(plan, stage, matrix) - (layers.head_here() ? matrix : 0);
    }
    if (tied) w.twice = embedding;
  }
  w.on_card += w.head;
  return w;
}

ComputeBuffer MemoryModel::micro_batch(const Plan& plan, const Load& load) const {
  ComputeBuffer b;
  b.keys = static_cast<std::int64_t>(
      whole_blocks(load.sequences * std::max(load.context, load.source), d(engine_.block_tokens)));
  b.micro_batch = std::min(engine_.micro_batch_tokens, std::max<std::int64_t>(b.keys, 1));
  b.window_keys = b.keys;
  if (engine_.windows == WindowAllocator::capped)
    for (const CacheRun& c : caches_)
      if (c.reach)
        b.window_keys = std::min(
            b.keys, static_cast<std::int64_t>(whole_blocks(
                        load.sequences * d(*c.reach) + d(b.micro_batch), d(engine_.block_tokens))));
  b.key_bytes = bits_per_element(plan.kv) / 8;
  b.flash_attention = engine_.flash_attention;
  b.latent_cached = engine_.mla_absorbed;
  b.latent_mode = engine_.latent_mode;
  b.latent_expanded = engine_.latent_expanded;
  b.heads_together = engine_.heads_together;
  b.attention_chunk = engine_.attention_chunk.in_base();
  b.masks_converted = engine_.masks_converted;
  b.fused_norms = engine_.fused_norms;
  b.fused_gates = engine_.fused_gates;
  b.fused_experts = engine_.fused_experts;
  b.expert_copies = engine_.expert_copies;
  // Devices overlap only where all layers lie on them whole (llama-context.cpp).
  if (plan.pipeline > 1 && (plan.gpu_layers < 0 || plan.gpu_layers > layers_) &&
      plan.experts_on_host == 0 && !by_rows(plan))
    b.input_copies = static_cast<int>(engine_.pipeline_input_copies);
  return b;
}

// Of the layers [begin, end) a few of each kind: from the third on a layer needs what the one
// before it does. The last is kept for what follows it.
std::vector<BufferLayer> MemoryModel::some_layers(LayerRange range, const Plan& plan) const {
  const GgmlBits bits = ggml_bits(plan);
  const std::size_t kinds = kinds_.size();
  std::vector<int> taken(kinds, 0);
  std::vector<BufferLayer> out;
  KindShare scratch;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    std::size_t k = 0;
    const auto at = static_cast<std::size_t>(i) * kinds;
    while (k + 1 < kinds && kind_counts_[at + k] == kind_counts_[at + kinds + k]) ++k;
    if (++taken[k] > 2 && i + 1 < range.end) continue;
    const WeightShare& experts = kind_at(k, 1, scratch).weights.experts;
    BufferLayer l;
    l.layer = kinds_[k];
    l.hidden = kind_stacks_[k]->hidden;
    l.windowed = caches_[k].reach.has_value();
    l.experts_on_host = i < plan.experts_on_host;
    if (experts.matrix_parameters > 0)
      l.expert_bits = 8 * bits.bytes(experts, bits.experts) / experts.parameters();
    out.push_back(l);
  }
  return out;
}

DeviceBuffers MemoryModel::ggml_buffers(const Plan& plan, int stage,
                                        const ComputeBuffer& pass) const {
  const StageLayers layers = stage_layers(plan, stage);
  const LayerRange card = layers.on_card();
  DeviceBuffers out;
  BufferRun run;
  run.layers = some_layers(card, plan);
  run.first = card.begin == layers.on_host();
  run.head = layers.head_here() && stack_->generates;
  if (!run.layers.empty() || run.head) out = compute_buffers(*stack_, run, pass);
  if (layers.on_host() == 0) return out;
  BufferRun host;
  host.layers = some_layers({0, layers.on_host()}, plan);
  host.head = !layers.head_on_card() && stack_->generates;
  ComputeBuffer alone = pass;
  alone.input_copies = 1;
  // The first card multiplies what the host holds, copied weight by weight, from 32 tokens on
  // (ggml_backend_cuda_offload_op). Without a card the CPU does it.
  if (stage == (layers.all_on_main ? layers.main_card : 0) && pass.micro_batch >= 32) {
    const GgmlBits bits = ggml_bits(plan);
    const double stored = bits_per_element(info(main_format_).gguf ? main_format_ : plan.weights);
    host.copied_bits = bits.layers > 0 ? bits.layers : stored;
    host.copied_head_bits = bits.head > 0 ? bits.head : stored;
    for (BufferLayer& l : host.layers) l.experts_on_host = true;
    out.device = std::max(out.device, compute_buffers(*stack_, host, alone).device);
    host.copied_bits = host.copied_head_bits = 0;
  }
  host.on_cpu = true;
  out.host = std::max(out.host, compute_buffers(*stack_, host, alone).device);
  return out;
}

void MemoryModel::explain_ggml_weights(const Plan& plan, int stage, std::size_t kind,
                                       std::string where, Record& record) const {
  const StageLayers layers = stage_layers(plan, stage);
  const GgmlBits bits = ggml_bits(plan);
  const LayerRange card = layers.on_card();
  const auto apart = std::clamp<std::int64_t>(plan.experts_on_host, card.begin, card.end);
  KindShare scratch;
  const LayerShare& s = kind_at(kind, 1, scratch).weights;
  const int n = layers.between(kind, card), with = layers.between(kind, {apart, card.end});
  const double sets = kind_shared_[kind] ? std::min(n, 1) : n;
  const double dense = bits.bytes(s.dense, bits.layers);
  const double kept = bits.as_stored ? s.dense.kept_bytes : 4 * s.dense.kept_parameters;
  const double expert =
      s.expert_count > 0 ? bits.bytes(s.experts, bits.experts) / s.expert_count : 0;
  record.step([&] {
    return DerivationStep{&memory_formula::layer_weights,
                          sets * dense + with * s.expert_count * expert,
                          "B",
                          std::move(where),
                          {{"sets", sets, ""},
                           {"kept", kept, "B"},
                           {"matrices", dense - kept, "B"},
                           {"layers", static_cast<double>(with), ""},
                           {"experts", s.expert_count, ""},
                           {"expert", expert, "B"}}};
  });
}

template <class Recorder>
RankMemory MemoryModel::ggml_memory(const Plan& plan, int stage, const Load& load,
                                    Recorder& recorder) const {
  RankMemory m;
  const StageLayers layers = stage_layers(plan, stage);
  const GgmlWeights weights = ggml_weights(plan, stage);
  m[MemoryTerm::weights] = weights.on_card;
  m.host.weights = weights.on_host;
  m.host.twice = weights.twice;
  if (!repacked_.empty()) {
    const std::int64_t host = layers.on_host();
    const auto apart = std::clamp<std::int64_t>(plan.experts_on_host, 0, layers_);
    m.host.repacked = repacked_bytes(plan, {0, host}, {0, std::max(apart, host)},
                                     !layers.head_on_card() && stack_->generates);
    // Where the device is the CPU itself, its layers are copied as well.
    if (on_cpu_)
      m[MemoryTerm::gathered] = repacked_bytes(plan, layers.on_card(), layers.on_card(),
                                               layers.head_here() && stack_->generates);
    recorder.step([&] {
      return DerivationStep{&memory_formula::repacked,
                            m.host.repacked + m[MemoryTerm::gathered],
                            "B",
                            "host memory",
                            {{"copies", m.host.repacked + m[MemoryTerm::gathered], "B",
                              engine_.fact_id("repacked_formats")}}};
    });
  }
  if constexpr (Recorder::on) {
    if (!by_rows(plan)) explain_weights(plan, stage, recorder);
    recorder.step([&] {
      return DerivationStep{
          &memory_formula::end_weights,
          weights.head,
          "B",
          "outside the layers",
          {{"embedding", 0, "B"}, {"head", weights.head, "B"}, {"others", 0, "B"}}};
    });
  }
  recorder.step([&] {
    return DerivationStep{
        &memory_formula::ggml_weights,
        weights.on_card,
        "B",
        "stage " + std::to_string(stage),
        {{"layers", weights.on_card - weights.head, "B"}, {"head", weights.head, "B"}}};
  });
  if (m.host.weights > 0)
    recorder.step([&] {
      return DerivationStep{&memory_formula::host_weights,
                            m.host.weights,
                            "B",
                            "host memory",
                            {{"embedding", weights.embedding, "B"},
                             {"layers_and_experts", m.host.weights - weights.embedding, "B"}}};
    });

  const double cache = cache_of(plan, stage, load);
  m[MemoryTerm::kv_cache] = cache;
  if constexpr (Recorder::on) explain_cache(plan, stage, load, recorder);
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    if (const int n = layers.between(k, {0, layers.on_host()}); n > 0)
      m.host.kv_cache += n * layer_cache(k, plan, load);
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

  const ComputeBuffer pass = micro_batch(plan, load);
  const DeviceBuffers buffers = ggml_buffers(plan, stage, pass);
  const bool head = layers.head_here() && stack_->generates;
  const double logits =
      head ? std::min(buffers.device, d(pass.micro_batch) * d(stack_->vocabulary) * 4) : 0;
  m[MemoryTerm::activations] = buffers.device - logits;
  if (by_rows(plan)) {
    const double scratch = row_scratch(plan, stage, d(pass.micro_batch));
    m[MemoryTerm::activations] += scratch;
    recorder.step([&] {
      return DerivationStep{&memory_formula::row_scratch,
                            scratch,
                            "B",
                            "stage " + std::to_string(stage),
                            {{"tokens", d(pass.micro_batch), "tokens"},
                             {"inputs_and_rows", scratch / (4 * d(pass.micro_batch)), ""}}};
    });
  }
  m[MemoryTerm::logits] = logits;
  m.host.buffers = buffers.host;
  recorder.step([&] {
    return DerivationStep{
        &memory_formula::compute_buffer,
        buffers.device,
        "B",
        "stage " + std::to_string(stage),
        {{"beside_logits", buffers.device - logits, "B"},
         {"logits", logits, "B"},
         {"micro_batch", d(pass.micro_batch), "tokens", engine_.fact_id("micro_batch_tokens")},
         {"keys", d(pass.keys), "tokens"}}};
  });
  m[MemoryTerm::fragmentation] =
      engine_.fragmentation * (m[MemoryTerm::activations] + m[MemoryTerm::logits]);
  add_runtime(plan, m, recorder);
  return m;
}

template RankMemory MemoryModel::ggml_memory(const Plan&, int, const Load&, NoRecord&) const;
template RankMemory MemoryModel::ggml_memory(const Plan&, int, const Load&, Record&) const;

}  // namespace trigon
