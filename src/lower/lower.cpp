#include "lower/lower.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "lower/layer_writer.hpp"

namespace trigon {
namespace {

bool is_sixteen_or_wider(Format f) {
  return f == Format::bf16 || f == Format::f16 || f == Format::f32;
}

}  // namespace

// Mean keys of a causal query: query i of the pass (1..fresh) sees min(cached + i, window).
double keys_within(const Pass& pass, double window) {
  double cached = pass.cached_tokens, fresh = pass.new_tokens;
  if (cached >= window) return window;
  if (cached + fresh <= window) return cached + (fresh + 1) / 2;
  double ramp = window - cached;  // queries that do not fill the window yet
  return (ramp * (cached + (ramp + 1) / 2) + (fresh - ramp) * window) / fresh;
}

// A projection of all tokens. `divisor` ranks share its `n` (column) or `k` (row) dimension.
void LayerWriter::linear(const char* name, const Linear& l, double column_ranks, double row_ranks,
                         double rows) {
  Operator op;
  op.kind = OperatorKind::gemm;
  op.name = name;
  op.m = rows;
  op.n = static_cast<double>(l.out) / column_ranks;
  op.k = static_cast<double>(l.in) / row_ranks;
  op.weights = product_format(l);
  op.activations = pass.activations;
  op.flops = 2 * op.m * op.n * op.k;
  op.weight_bytes = op.n * op.k * element_bytes(op.weights);
  op.data_bytes = rows * (op.n + op.k) * act();
  widen(op, rows);
  convert(op);
  round_input(op);
  out.push_back(op);
}

void LayerWriter::wide_linear(const char* name, const Linear& l, double column_ranks,
                              double row_ranks, double rows) {
  if (!pass.training) return linear(name, l, column_ranks, row_ranks, rows);
  Pass wide = pass;
  if (pass.replace_weights && bits_per_element(*pass.replace_weights) < 16)
    wide.replace_weights = pass.activations;
  LayerWriter{stack, wide, out}.linear(name, l, column_ranks, row_ranks, rows);
}

Format LayerWriter::product_format(const Linear& l) const {
  if (is_sixteen_or_wider(l.format)) return pass.replace_weights.value_or(l.format);
  return pass.trains_matrices ? pass.replace_weights.value_or(pass.activations) : l.format;
}

// A product in 8 or 4 bit reads a rounded copy of its input. It is written twice, along rows and
// along columns, since the gradient of the weight sums over the other one (NVIDIA, Transformer
// Engine documentation, "Using FP8 and FP4 with Transformer Engine": cast and transpose). Products
// that follow each other share it. The backward pass rounds the gradient of what came out.
void LayerWriter::round_input(Operator& product) {
  const FormatInfo& f = info(product.weights);
  if (!pass.training || f.weight_only || f.gguf || bits_per_element(product.weights) >= 16) return;
  const double narrow = element_bytes(product.weights);
  product.data_bytes -= product.m * product.k * (act() - narrow);
  const auto shares = [&](const Operator& last) {
    return last.kind == product.kind && last.m == product.m && last.k == product.k &&
           last.weights == product.weights;
  };
  const double each = act() + (pass.trains_matrices ? 2 : 1) * narrow;
  const double gradient = product.m * product.n * each;
  if (!out.empty() && shares(out.back())) {
    auto first = out.rbegin();
    while (first != out.rend() && shares(*first)) ++first;
    first->backward_bytes += gradient;
    return;
  }
  Operator op;
  op.kind = OperatorKind::elementwise;
  op.name = "quantise";
  op.m = product.m * product.k;
  op.activations = pass.activations;
  op.data_bytes = op.m * each;
  // Where kernels are fused a norm writes the rounded copies instead of its result.
  if (pass.fused_elementwise && !out.empty() && std::string_view(out.back().name) == "norm")
    op.data_bytes = op.m * std::max(0.0, each - 2 * act());
  op.backward_bytes = gradient;
  op.flops = op.m;
  out.push_back(op);
}

// Automatic mixed precision writes a 16-bit copy of each matrix in every pass.
void LayerWriter::convert(Operator& product) {
  if (!pass.autocast || product.weights != Format::f32) return;
  const double elements = product.weight_bytes / element_bytes(product.weights);
  product.weights = pass.activations;
  product.weight_bytes = elements * element_bytes(product.weights);
  Operator op;
  op.kind = OperatorKind::elementwise;
  op.name = "cast";
  op.m = elements;
  op.activations = pass.activations;
  op.data_bytes = elements * (element_bytes(Format::f32) + element_bytes(pass.activations));
  op.flops = elements;
  out.push_back(op);
}

// Matrices of a weight-only format that meet many rows are unpacked into memory, once for each
// pass, and multiplied from there.
void LayerWriter::widen(Operator& product, double rows) {
  if (pass.row_products && info(product.weights).weight_only) {
    product.row_bytes = product.weight_bytes;
    product.again_bytes = product.weight_bytes * std::max(0.0, rows - 1);
    return;
  }
  if (pass.widened_rows <= 0 || rows < pass.widened_rows || !info(product.weights).weight_only)
    return;
  const double elements = product.weight_bytes / element_bytes(product.weights);
  Operator op;
  op.kind = OperatorKind::elementwise;
  op.name = "widen";
  op.m = elements;
  op.activations = Format::f16;
  op.weight_bytes = 0;
  op.data_bytes = product.weight_bytes + elements * element_bytes(Format::f16);
  op.flops = elements * 2;
  op.repeat = product.repeat;
  out.push_back(op);
  product.weights = Format::f16;
  product.weight_bytes = elements * element_bytes(Format::f16);
}

// `values` elements of the hidden size class, read `reads` and written `writes` times.
void LayerWriter::elementwise(const char* name, double values, double reads, double writes) {
  Operator op;
  op.kind = OperatorKind::elementwise;
  op.name = name;
  op.m = values;
  op.activations = pass.activations;
  op.data_bytes = values * act() * (reads + writes);
  // Its gradient takes what it was given and the gradient of what it wrote to that of its inputs.
  if (pass.training && pass.fused_elementwise)
    op.backward_bytes = values * act() * (2 * reads + writes);
  op.flops = values * 4;
  out.push_back(op);
}

// Functions whose gradient needs no input again move as much backward as forward: copies,
// rotations, and a norm beside a residual (two gradients and the input read, one written).
void LayerWriter::mirrored() {
  if (out.back().backward_bytes >= 0) out.back().backward_bytes = out.back().data_bytes;
}

// Sums the row-parallel outputs over the tensor group.
void LayerWriter::reduce_hidden(const char* name) {
  if (pass.tensor <= 1) return;
  Operator op;
  op.name = name;
  op.payload_bytes = tokens() * static_cast<double>(stack.hidden) * act();
  op.ranks = pass.tensor;
  if (pass.sequence_parallel) {
    op.kind = OperatorKind::reduce_scatter;
    out.push_back(op);
    op.kind = OperatorKind::all_gather;
    out.push_back(op);
  } else {
    op.kind = OperatorKind::all_reduce;
    out.push_back(op);
  }
}

void LayerWriter::norm(const Norm& n, const char* name) {
  // Fused with the residual addition: reads x and residual, writes both.
  double ranks = pass.sequence_parallel ? tensor() : 1;
  double passes = pass.fused_elementwise ? 1 : 2.5;
  elementwise(name, tokens() * static_cast<double>(n.width) / ranks, 2 * passes, 2 * passes);
  mirrored();
}

void LayerWriter::mlp(const Mlp& m, const char* reduce) {
  double t = tensor(), rows = tokens();
  linear("mlp.up", m.up, t, 1, rows);
  if (m.gate) linear("mlp.gate", *m.gate, t, 1, rows);
  elementwise("mlp.activation", rows * static_cast<double>(m.width) / t,
              (m.gated ? 2 : 1) * (pass.fused_elementwise ? 1 : 2), pass.fused_elementwise ? 1 : 2);
  linear("mlp.down", m.down, 1, t, rows);
  if (reduce) reduce_hidden(reduce);
}

void LayerWriter::expert_linear(const char* name, const Linear& l, double rows, double groups,
                                double split, bool column) {
  Operator op;
  op.kind = OperatorKind::grouped_gemm;
  op.name = name;
  op.m = rows;
  op.n = static_cast<double>(l.out) / (column ? split : 1);
  op.k = static_cast<double>(l.in) / (column ? 1 : split);
  op.groups = std::max(groups, 1.0);
  op.weights = product_format(l);
  op.activations = pass.activations;
  op.flops = 2 * rows * op.n * op.k;
  op.weight_bytes = groups * op.n * op.k * element_bytes(op.weights);
  op.data_bytes = rows * (op.n + op.k) * act();
  if (tokens() <= pass.gathered_rows) {
    // One product for each pair of a token and an expert, on that expert's matrix.
    op.kind = OperatorKind::gemm;
    op.groups = std::max(rows, 1.0);
  } else if (pass.expert_loop && (!info(op.weights).weight_only || pass.widened_rows > 0)) {
    // Rows of each expert are copied together, multiplied and copied back.
    op.kind = OperatorKind::gemm;
    op.repeat = op.groups;
    op.groups = 1;
    op.m /= op.repeat;
    op.flops /= op.repeat;
    op.weight_bytes /= op.repeat;
    op.data_bytes /= op.repeat;
    elementwise("moe.gather", op.m * op.k, 1, 1);
    out.back().repeat = op.repeat;
    elementwise("moe.scatter", op.m * op.n, 1, 1);
    out.back().repeat = op.repeat;
  }
  widen(op, op.m / op.groups);
  round_input(op);
  out.push_back(op);
}

void LayerWriter::experts(const MixtureOfExperts& m) {
  if (pass.expert_kernels && pass.expert > 1) return exchanged_experts(m);
  double rows = tokens(), t = tensor();
  wide_linear("moe.router", m.router, 1, 1, rows);
  double e = static_cast<double>(m.experts), active = static_cast<double>(m.active);
  // Serving shares the tensor group between experts (ep) and slices of each expert (t / ep);
  // every rank sees all tokens. Training exchanges tokens over the expert group instead; where
  // experts are not divided by the tensor group, each of its ranks multiplies its own part of them
  // (Megatron-LM, --expert-tensor-parallel-size). What is exchanged is taken to be the same: runs
  // whose expert groups span tensor ranks show no smaller exchange.
  double ep = std::max(1, pass.expert);
  const bool training = !pass.expert_inside_tensor;
  const double inner = training && pass.expert_tensor > 0 ? pass.expert_tensor : t;
  const double apart = training ? std::max(1.0, t / inner) : 1;
  double slice = training ? inner : t / ep;
  double seen = training ? rows / apart * ep : rows;
  double hit = experts_hit(e, active, seen) / ep;
  double pairs = training ? rows / apart * active : rows * active / ep;
  if (m.latent_in) linear("moe.latent_in", *m.latent_in, 1, 1, rows);
  const double width = static_cast<double>(m.up.in);
  if (training && ep > 1) dispatch("moe.dispatch", rows * active, width);
  expert_linear("moe.up", m.up, pairs, hit, slice, true);
  if (m.gate) expert_linear("moe.gate", *m.gate, pairs, hit, slice, true);
  elementwise("moe.activation", pairs * static_cast<double>(m.width) / slice, m.gated ? 2 : 1, 1);
  expert_linear("moe.down", m.down, pairs, hit, slice, false);
  // Permutation to expert order and the weighted sum back.
  if (rows > pass.gathered_rows) {
    elementwise("moe.permute", pairs * static_cast<double>(m.up.in), 2, 2);
    mirrored();
  }
  if (training && ep > 1) dispatch("moe.combine", rows * active, width);
  if (m.latent_out) linear("moe.latent_out", *m.latent_out, 1, 1, rows);
  if (m.shared) {
    mlp(*m.shared, nullptr);
    if (m.shared_gate) linear("moe.shared_gate", *m.shared_gate, 1, 1, rows);
  }
  reduce_hidden("moe.reduce");
}

// The group brings the tokens of all its ranks together for the experts it divides, and each rank
// takes back the sums of its own. Where experts multiply in 8 or 4 bit, tokens are rounded before
// they travel (TensorRT-LLM, _torch/modules/fused_moe/fused_moe_cutlass.py).
void LayerWriter::gathered_experts(const MixtureOfExperts& m, std::int32_t ranks) {
  const double rows = tokens(), group = ranks, all = rows * group;
  const double e = static_cast<double>(m.experts), active = static_cast<double>(m.active);
  const double parts = std::max(1, pass.expert), slice = group / parts;
  const double hit = experts_hit(e, active, all) / parts, pairs = all * active / parts;
  linear("moe.router", m.router, 1, 1, rows);
  if (m.latent_in) linear("moe.latent_in", *m.latent_in, 1, 1, rows);
  const double width = static_cast<double>(m.up.in);
  const bool narrow = !info(m.up.format).weight_only && bits_per_element(m.up.format) <= 8;
  Operator op;
  op.kind = OperatorKind::all_gather;
  op.name = "moe.gather_tokens";
  op.payload_bytes = all * width * (narrow ? element_bytes(m.up.format) : act());
  op.ranks = ranks;
  out.push_back(op);
  expert_linear("moe.up", m.up, pairs, hit, slice, true);
  if (m.gate) expert_linear("moe.gate", *m.gate, pairs, hit, slice, true);
  elementwise("moe.activation", pairs * static_cast<double>(m.width) / slice, m.gated ? 2 : 1, 1);
  expert_linear("moe.down", m.down, pairs, hit, slice, false);
  elementwise("moe.permute", pairs * width, 2, 2);
  op.kind = OperatorKind::reduce_scatter;
  op.name = "moe.reduce";
  op.payload_bytes = all * width * act();
  out.push_back(op);
  if (m.latent_out) linear("moe.latent_out", *m.latent_out, 1, 1, rows);
  if (m.shared) {
    mlp(*m.shared, nullptr);
    if (m.shared_gate) linear("moe.shared_gate", *m.shared_gate, 1, 1, rows);
  }
}

// Each rank routes its share of the tokens, sends them to the ranks of their experts, and gets the
// sums back; the group's all-reduce before (scatter and gather) already brings tokens together.
void LayerWriter::exchanged_experts(const MixtureOfExperts& m) {
  Pass share = pass;
  share.sequences /= tensor();
  share.tensor = 1;
  LayerWriter own{stack, share, out};
  const double rows = own.tokens(), ranks = std::max(1, pass.expert);
  const double e = static_cast<double>(m.experts), active = static_cast<double>(m.active);
  const double hit = experts_hit(e, active, tokens()) / ranks, pairs = tokens() * active / ranks;
  own.linear("moe.router", m.router, 1, 1, rows);
  if (m.latent_in) own.linear("moe.latent_in", *m.latent_in, 1, 1, rows);
  const bool narrow = bits_per_element(m.up.format) <= 8;
  own.send_tokens(OperatorKind::expert_dispatch, "moe.dispatch", m,
                  narrow ? Format::fp8_block : pass.activations);
  const double slice = tensor() / ranks;
  own.expert_linear("moe.up", m.up, pairs, hit, slice, true);
  if (m.gate) own.expert_linear("moe.gate", *m.gate, pairs, hit, slice, true);
  own.elementwise("moe.activation", pairs * static_cast<double>(m.width) / slice, m.gated ? 2 : 1,
                  1);
  own.expert_linear("moe.down", m.down, pairs, hit, slice, false);
  own.send_tokens(OperatorKind::expert_combine, "moe.combine", m, pass.activations);
  if (m.latent_out) own.linear("moe.latent_out", *m.latent_out, 1, 1, rows);
  if (m.shared) {
    own.mlp(*m.shared, nullptr);
    if (m.shared_gate) own.linear("moe.shared_gate", *m.shared_gate, 1, 1, rows);
  }
}

void LayerWriter::send_tokens(OperatorKind kind, const char* name, const MixtureOfExperts& m,
                              Format format) {
  Operator op;
  op.kind = kind;
  op.name = name;
  op.m = tokens();
  op.k = static_cast<double>(m.up.in);
  op.n = static_cast<double>(m.active);
  op.groups = static_cast<double>(m.experts);
  op.weights = format;
  op.low_latency = pass.low_latency_experts;
  op.payload_bytes = op.m * op.n * op.k * element_bytes(format);
  op.ranks = pass.expert;
  out.push_back(op);
}

void LayerWriter::dispatch(const char* name, double pairs, double width) {
  Operator op;
  op.kind = OperatorKind::all_to_all;
  op.name = name;
  op.payload_bytes = pairs * width * act();
  op.ranks = pass.expert;
  op.stride = pass.tensor;
  out.push_back(op);
}

double experts_hit(double experts, double active, double tokens) {
  if (experts <= 0) return 0;
  return experts * (1 - std::pow(1 - std::min(1.0, active / experts), tokens));
}

double mean_keys(const Attention& a, const Pass& pass) {
  double cached = pass.cached_tokens, fresh = pass.new_tokens;
  if (a.chunk) {
    double c = static_cast<double>(*a.chunk);
    // One token somewhere in its chunk sees half of it on average.
    if (fresh < 2) return cached + fresh <= c ? cached + 1 : (c + 1) / 2;
    // Keys that the first n queries of a sequence see in all.
    auto seen = [c](double n) {
      double rest = std::fmod(n, c);
      return std::floor(n / c) * c * (c + 1) / 2 + rest * (rest + 1) / 2;
    };
    return (seen(cached + fresh) - seen(cached)) / fresh;
  }
  if (!a.causal)
    return std::min(cached + fresh, a.window ? static_cast<double>(*a.window) : kNoWindow);
  return keys_within(pass, a.window ? static_cast<double>(*a.window) : kNoWindow);
}

namespace {

// What one rank does where the tensor group divides sequences.
Pass own_share(const Pass& pass) {
  Pass own = pass;
  if (!pass.attention_data) return own;
  own.sequences = std::max(1.0, pass.sequences / pass.tensor);
  own.tensor = 1;
  return own;
}

}  // namespace

void lower_layer(const Stack& stack, const Layer& layer, const Pass& whole, OperatorList& out) {
  const Pass pass = own_share(whole);
  LayerWriter w{stack, pass, out};
  for (const SubLayer& part : layer.parts) {
    if (auto n = std::get_if<Norm>(&part)) w.norm(*n, "norm");
    if (auto a = std::get_if<Attention>(&part)) w.attention(*a);
    if (auto a = std::get_if<LatentAttention>(&part)) w.latent(*a);
    if (auto c = std::get_if<CrossAttention>(&part)) w.cross(c->attention);
    if (auto a = std::get_if<CompressedAttention>(&part)) w.compressed(*a);
    if (auto m = std::get_if<RecurrentMixer>(&part)) w.recurrence(*m);
    if (auto m = std::get_if<StreamMixer>(&part)) w.streams(*m);
    if (auto m = std::get_if<Mlp>(&part)) w.mlp(*m, "mlp.reduce");
    if (auto m = std::get_if<MixtureOfExperts>(&part)) {
      if (whole.attention_data && whole.tensor > 1)
        w.gathered_experts(*m, whole.tensor);
      else
        w.experts(*m);
    }
  }
}

void lower_embedding(const Stack& stack, const Pass& whole, OperatorList& out) {
  const Pass pass = own_share(whole);
  LayerWriter w{stack, pass, out};
  Operator op;
  op.kind = OperatorKind::gather;
  op.name = "embedding";
  op.data_bytes = w.tokens() * static_cast<double>(stack.hidden) * w.act() * 2;
  op.activations = pass.activations;
  out.push_back(op);
  w.reduce_hidden("embedding.reduce");
  for (const FrontEnd& f : stack.front) {
    const double rows = w.tokens() * f.rows;
    w.linear("front", f.linear, 1, 1, rows);
    const double passes = pass.fused_elementwise ? 1 : 2;
    w.elementwise("front.activation", rows * static_cast<double>(f.linear.out), passes, passes);
    if (f.norm)
      w.elementwise("front.norm", rows * static_cast<double>(f.linear.out), passes, passes);
  }
  if (!stack.projections.empty())
    w.linear("embedding.projection", stack.projections.front(), 1, 1, w.tokens());
}

void lower_head(const Stack& stack, const Pass& whole, OperatorList& out) {
  const Pass pass = own_share(whole);
  LayerWriter w{stack, pass, out};
  for (const Norm& n : stack.final_norms) w.norm(n, "final_norm");
  const double rows = pass.sequences * std::min(pass.logits_rows, pass.new_tokens) / pass.context;
  for (const Tail& t : stack.tail) {
    const double tail_rows = t.pooled ? pass.sequences : rows;
    if (tail_rows <= 0) continue;
    w.linear("tail", t.linear, 1, 1, tail_rows);
    w.elementwise("tail.activation", tail_rows * static_cast<double>(t.linear.out), 1, 1);
    if (t.norm) w.elementwise("tail.norm", tail_rows * static_cast<double>(t.linear.out), 1, 1);
  }
  if (rows <= 0) return;
  Linear head;
  if (stack.head)
    head = *stack.head;
  else if (stack.tied && stack.embedding)
    head = {stack.embedding->out,    stack.vocabulary,  1,
            stack.embedding->format, Split::vocabulary, false};
  else
    return;
  if (stack.projections.size() > 1) w.linear("head.projection", stack.projections[1], 1, 1, rows);
  w.wide_linear("head", head, pass.tensor, 1, rows);
  if (pass.loss_bytes > 0) {
    Operator op;
    op.kind = OperatorKind::elementwise;
    op.name = "loss";
    op.m = rows * static_cast<double>(stack.vocabulary) / w.tensor();
    op.activations = pass.activations;
    op.data_bytes = op.m * pass.loss_bytes;
    op.flops = op.m * 4;
    out.push_back(op);
    if (pass.tensor > 1) {
      // The largest logit, that of the label and the sum of a row, in 32 bit, over the group
      // (Megatron-LM, core/tensor_parallel/cross_entropy.py).
      Operator sum;
      sum.kind = OperatorKind::all_reduce;
      sum.name = "loss.reduce";
      sum.payload_bytes = rows * 4;
      sum.ranks = pass.tensor;
      sum.repeat = 3;
      out.push_back(sum);
    }
    return;
  }
  if (pass.tensor > 1) {
    Operator op;
    op.kind = OperatorKind::all_gather;
    op.name = "head.gather";
    op.payload_bytes = rows * static_cast<double>(stack.vocabulary) * w.act();
    op.ranks = pass.tensor;
    out.push_back(op);
  }
}

}  // namespace trigon
