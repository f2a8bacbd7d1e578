// The Temporal Fusion Transformer: Lim et al. 2019, arXiv:1912.09363, as
// NVIDIA/DeepLearningExamples writes it. Variables of each hour are embedded and weighed against
// each other, two LSTMs read past and known future, and attention whose heads share their values
// looks back.

#include <string>

#include "network/builder.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

ValueId gated(NetworkBuilder& b, const std::string& name, ValueId x, std::int64_t out) {
  const ValueId y = b.linear(name, x, 2 * out);
  TensorShape s = b.shape(y);
  s.back() = out;
  return b.node(name + ".glu", Elementwise{"glu", 6, Keeps::inputs}, {y}, {}, std::move(s));
}

// Gated residual network; `out` of 0 keeps the input's width and needs no projection of it.
ValueId grn(NetworkBuilder& b, const std::string& name, ValueId a, std::int64_t hidden,
            std::int64_t out = 0, std::optional<ValueId> context = std::nullopt) {
  auto in_grn = b.scope(name);
  ValueId x = b.linear("lin_a", a, hidden);
  if (context) x = b.add("with_context", x, b.linear("lin_c", *context, hidden, false));
  x = b.linear("lin_i", b.activation("elu", x, Activation::elu), hidden);
  x = gated(b, "glu", b.dropout("dropout", x), out > 0 ? out : hidden);
  x = b.add("residual", x, out > 0 ? b.linear("out_proj", a, out) : a);
  return out == 1 ? x : b.layer_norm("norm", x);
}

// Variables [steps, count * hidden] -> [steps, hidden].
ValueId select_variables(NetworkBuilder& b, const std::string& name, ValueId x, std::int64_t count,
                         std::int64_t hidden, std::optional<ValueId> context) {
  auto in_selection = b.scope(name);
  const std::int64_t steps = b.tokens(x);
  const ValueId weights = b.softmax("weights", grn(b, "joint_grn", x, hidden, count, context));
  std::vector<ValueId> each;
  for (std::int64_t i = 0; i < count; ++i)
    each.push_back(grn(b, "var" + std::to_string(i), b.slice("variable", x, 1, hidden), hidden));
  const ValueId all = b.reshape("stacked", b.concatenate("stack", each, 1), {steps, count, hidden});
  const ValueId row = b.reshape("weights_row", weights, {steps, 1, count});
  return b.reshape("selected", b.product("combine", row, all), {steps, hidden});
}

}  // namespace

Model build_tft(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t h = spec.whole("hidden"), heads = spec.whole("heads"), head = h / heads;
  const std::int64_t past = spec.whole("past_steps"), future = spec.whole("future_steps");
  const std::int64_t known = spec.whole("known_variables"), steps = past + future;
  // Each continuous variable has a vector and a bias of its own.
  auto embed = [&](const char* name, std::int64_t count, std::int64_t length) {
    const std::string n(name);
    return b.node(name, Elementwise{"scale_shift", 2, Keeps::inputs}, {b.input({length, count})},
                  {b.weight(n + ".vectors", {count, h}), b.weight(n + ".bias", {count, h})},
                  {length, count * h});
  };
  const ValueId fixed =
      b.embedding("static", b.input({1}, Format::i64), spec.whole("static_rows"), h);
  const ValueId inputs = embed("known", known, steps), target = embed("target", 1, past);
  const ValueId context = select_variables(b, "static_vsn", fixed, 1, h, std::nullopt);
  const ValueId selection = grn(b, "context_selection", context, h);
  const ValueId enrichment = grn(b, "context_enrichment", context, h);
  grn(b, "context_state_h", context, h);
  grn(b, "context_state_c", context, h);
  const ValueId history = b.concatenate("history", {b.slice("past", inputs, 0, past), target}, 1);
  const ValueId seen = select_variables(b, "history_vsn", history, known + 1, h, selection);
  const ValueId coming =
      select_variables(b, "future_vsn", b.slice("coming", inputs, 0, future), known, h, selection);
  const ValueId skip = b.concatenate("input_embedding", {seen, coming}, 0);
  ValueId x = b.concatenate("temporal",
                            {b.recurrence("history_encoder", seen, RecurrentCell::lstm, h),
                             b.recurrence("future_encoder", coming, RecurrentCell::lstm, h)},
                            0);
  const ValueId temporal =
      b.layer_norm("input_gate_ln", b.add("gate_skip", gated(b, "input_gate", x, h), skip));
  const ValueId enriched = grn(b, "enrichment_grn", temporal, h, 0, enrichment);
  // One head's worth of values serves all heads; the result is their mean.
  const ValueId qkv = b.linear("qkv", enriched, (2 * heads + 1) * head, false);
  AttentionOptions o;
  o.heads = heads;
  o.causal = true;
  o.fused = false;
  const ValueId v = b.copy("values_of_all_heads", {b.slice("v", qkv, 1, head)}, {steps, h});
  x = b.attention("attention", b.slice("q", qkv, 1, h), b.slice("k", qkv, 1, h), v, o);
  x = b.linear("attention_out", b.reduce("mean_of_heads", x, {steps, head}), h, false);
  x = b.slice("ahead", b.dropout("dropout", x), 0, future);
  x = b.layer_norm("attention_ln", b.add("attention_skip", gated(b, "attention_gate", x, h),
                                         b.slice("enriched_ahead", enriched, 0, future)));
  x = grn(b, "positionwise_grn", x, h);
  x = b.layer_norm("decoder_ln", b.add("decoder_skip", gated(b, "decoder_gate", x, h),
                                       b.slice("temporal_ahead", temporal, 0, future)));
  x = b.linear("quantile_proj", x, 3);
  return network_model(spec, b.finish({x}), WorkUnit::sample, {});
}

}  // namespace trigon
