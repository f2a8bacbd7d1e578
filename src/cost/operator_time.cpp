#include <algorithm>
#include <cmath>

#include "cost/device_model.hpp"

namespace trigon {
namespace {

// Tiles that output is cut into. Finer than the largest kernels' tiles: libraries pick among
// several, so what is seen on average is quantisation at this grain.
constexpr double kTile = 64;

double round_up(double v, double to) { return std::ceil(v / to) * to; }

double corner(double a, double b, double sharpness) {
  if (a <= 0) return b;
  if (b <= 0) return a;
  double hi = std::max(a, b), lo = std::min(a, b);
  return hi * std::pow(1 + std::pow(lo / hi, sharpness), 1 / sharpness);
}

OperatorTime combine(double compute, double memory, double launch, double sharpness) {
  OperatorTime t;
  t.compute_seconds = compute;
  t.memory_seconds = memory;
  double body = corner(compute, memory, sharpness);
  t.seconds = body + launch;
  t.bound = launch > body ? Bound::latency : compute > memory ? Bound::compute : Bound::bandwidth;
  return t;
}

// What a kernel reads was written by the one before it: values that fit into the last-level cache
// with room for what is written beside them come from there. From half of the cache to twice its
// size the share falls with the logarithm.
double beyond_cache(const DeviceModel& d, double bytes) {
  if (d.engine.cache_speedup <= 1 || d.l2_bytes <= 0 || bytes <= 0) return bytes;
  const double share = std::clamp(0.5 - std::log(bytes / d.l2_bytes) / std::log(16.0), 0.0, 1.0);
  // A large cache beside slow memory gains most; what one multiprocessor reads from it is known of
  // the tables of attention.
  const double faster = d.operators.attention.warm_rate * d.sm_count / d.bandwidth;
  return bytes * (share / (d.engine.cache_speedup * std::max(1.0, faster)) + 1 - share);
}

// `ceiling` of the memory's bandwidth, half of which is reached at `half_bytes`; no more than the
// cores keep in flight.
double stream_seconds(const DeviceModel& d, double bytes, double ceiling, double half_bytes) {
  if (bytes <= 0) return 0;
  const double memory = (bytes + half_bytes * d.engine.fixed_factor) /
                        (d.bandwidth * ceiling * d.engine.stream_factor);
  if (d.core_hz <= 0) return memory;
  return behind_host(memory, bytes / (d.core_hz * d.engine.core_stream));
}
double stream_seconds(const DeviceModel& d, double bytes) {
  return stream_seconds(d, bytes, d.operators.stream.ceiling, d.operators.stream.half_bytes);
}

// 2:4 sparse weights: the units skip the zeros, so they do a product in half the time.
double skipped(Format weights) { return is_sparse(weights) ? 2 : 1; }

// Rows that one pass of widened weights serves: the larger tiles of weight-only kernels.
constexpr double kWidenedRows = 128;

// Share of operands of this size that the last-level cache still holds when they are read again.
double resident(const DeviceModel& d, double bytes) {
  return std::clamp(0.5 - std::log(bytes / d.l2_bytes) / std::log(16.0), 0.0, 1.0);
}

// Timed again and again, operands come from the last-level cache as far as it holds them.
double warm(const DeviceModel& d, double bytes) {
  if (d.operators.stream.warm_speedup <= 1 || d.l2_bytes <= 0 || bytes <= 0) return bytes;
  const double share = resident(d, bytes);
  return bytes * (share / d.operators.stream.warm_speedup + 1 - share);
}

// A matrix that kernels read again for each row: as far as the last-level cache holds it, at the
// rate that multiprocessors read the cache with.
double read_again(const DeviceModel& d, const Operator& op) {
  if (op.again_bytes <= 0 || d.l2_bytes <= 0) return op.again_bytes;
  const double faster = std::max(1.0, d.operators.attention.warm_rate * d.sm_count / d.bandwidth);
  const double held = resident(d, op.row_bytes);
  return op.again_bytes * (held / faster + 1 - held);
}

// Formats that store the number of an entry of a codebook for each 8 or 4 weights (ggml-quants.c,
// iq2_xxs to iq3_s): look-ups for 256 weights.
double lookups(Format f) {
  switch (dense_of(f)) {
    case Format::iq1_s:
    case Format::iq1_m:
    case Format::iq2_xxs:
    case Format::iq2_xs:
    case Format::iq2_s:
      return 32;
    case Format::iq3_xxs:
    case Format::iq3_s:
      return 64;
    default:
      return 0;
  }
}

// A processor's vector units cannot look up entries: the number is cut out of its bits, the entry
// loaded and put into its place in a register, five or six operations, which is what a core
// finishes in a cycle (Zen 3 and later 6, Golden Cove 6, Apple's 8).
double lookup_seconds(const DeviceModel& d, const Operator& op) {
  if (!d.accelerator || d.accelerator->kind != DeviceKind::cpu || d.core_hz <= 0) return 0;
  const double rows = op.groups * std::ceil(op.m / op.groups / std::max(1.0, d.lookup_rows));
  return lookups(op.weights) / 256 * op.n * op.k * rows / (d.core_hz * d.core_share);
}

OperatorTime matrix_time(const DeviceModel& d, const Operator& op) {
  const MatrixPath path = matrix_path(d, op);
  const MathClass cls = path == MatrixPath::fp8_block ? MathClass::fp8
                        : path > MatrixPath::fp4      ? MathClass::half
                                                      : static_cast<MathClass>(path);
  const MatrixCoefficients& c = d.operators.matrix[static_cast<std::size_t>(path)];
  double peak = d.unit[static_cast<std::size_t>(cls)].peak * d.power_scale * skipped(op.weights);
  double groups = op.groups;
  double rows_a_group = op.m / groups;
  double m = groups * round_up(rows_a_group, rows_a_group < kTile ? 16 : kTile);
  // Kernels for a few rows stay on the vector units where padding to a matrix tile costs more.
  m = std::min(m, op.m * std::max(1.0, peak / std::max(d.vector_peak, 1.0)));
  // Dot products of a processor's vector units take rows one by one.
  const MathMode mode = d.unit[static_cast<std::size_t>(cls)].mode;
  if (d.accelerator && d.accelerator->kind == DeviceKind::cpu && mode != MathMode::int8_matrix &&
      mode != MathMode::bf16_matrix && mode != MathMode::fp16_matrix_fp32_accumulate)
    m = op.m;
  double n = round_up(op.n, kTile);
  double wave = 1;
  if (d.sm_count > 0) {
    double tiles = groups * std::ceil(rows_a_group / kTile) * (n / kTile);
    double waves = tiles / d.sm_count;
    wave = std::pow(waves / std::ceil(waves), c.wave_exponent);
  }
  double rate = peak * c.ceiling * d.engine.compute_factor * wave * op.k / (op.k + c.k_half);
  if (op.kind == OperatorKind::grouped_gemm) rate *= d.operators.grouped_factor;
  double compute = 2 * m * n * op.k / rate;
  if (c.widened_per_second > 0 && path > MatrixPath::fp8_block)
    compute = std::max(compute, groups * op.n * op.k * std::ceil(rows_a_group / kWidenedRows) /
                                    (c.widened_per_second * d.engine.compute_factor));
  compute += lookup_seconds(d, op);
  double bytes = op.timed_alone ? warm(d, op.weight_bytes + op.data_bytes)
                                : op.weight_bytes + beyond_cache(d, op.data_bytes);
  bytes += read_again(d, op);
  double memory = std::max(stream_seconds(d, bytes), bytes / d.bandwidth);
  double latency = d.operators.launch_seconds + c.latency_seconds;
  if (op.kind == OperatorKind::grouped_gemm) latency += d.operators.grouped_latency_seconds;
  OperatorTime t = combine(compute, memory, latency * d.engine.fixed_factor, c.sharpness);
  if (op.timed_alone) t.seconds = std::max(t.seconds, c.floor_seconds);
  return t;
}

// Convolutions run as implicit products. A filter of its own for each channel leaves the matrix
// unit nothing to share, so it runs on the vector unit.
OperatorTime convolution_time(const DeviceModel& d, const Operator& op) {
  MathClass cls = math_class(d, op.weights, op.activations);
  const MatrixCoefficients& c = d.operators.matrix[static_cast<std::size_t>(cls)];
  double memory = stream_seconds(d, op.weight_bytes + beyond_cache(d, op.data_bytes));
  double matrix_peak =
      d.unit[static_cast<std::size_t>(cls)].peak * d.power_scale * skipped(op.weights);
  double m = round_up(op.m, kTile), n = round_up(op.n, kTile);
  // A processor's kernels take positions one by one and channels by vectors of 16 (oneDNN
  // documentation, "Understanding Memory Formats": nChw16c).
  if (d.accelerator && d.accelerator->kind == DeviceKind::cpu) m = op.m, n = round_up(op.n, 16);
  double wave = 1;
  if (d.sm_count > 0) {
    double waves = op.groups * (m / kTile) * (n / kTile) / d.sm_count;
    wave = std::pow(waves / std::ceil(waves), c.wave_exponent);
  }
  // Over time and in volumes other kernels run than over images (PyTorch gives cuDNN a signal as an
  // image of one row: aten/src/ATen/native/Convolution.cpp, `view4d`).
  const double axes = op.axes == 1   ? d.engine.line_convolution_factor
                      : op.axes == 3 ? d.engine.volume_convolution_factor
                                     : 1;
  double rate = matrix_peak * c.ceiling * d.engine.convolution_factor * axes * wave * op.k /
                (op.k + d.engine.convolution_k_half);
  double compute = 2 * m * n * op.k * op.groups / rate;
  // F(2 x 2, 3 x 3): 16 products for four outputs of nine each (A. Lavin, S. Gray, CVPR 2016).
  // oneDNN's default on processors stays with direct convolutions.
  if (op.minimal_filtering && cls == MathClass::fp32 &&
      !(d.accelerator && d.accelerator->kind == DeviceKind::cpu))
    compute *= 16. / 36;
  double vector_peak = d.vector_peak;
  // The first cache hands a multiprocessor 32 words a clock (NVIDIA, CUDA C++ programming guide,
  // compute capability 7.x and 8.x). A product takes a value and a weight from it: 32 FLOPs a
  // clock in 32 bit, twice that in pairs of 16; filters of one group share what they load.
  if (d.accelerator && d.accelerator->kind != DeviceKind::cpu && d.core_hz > 0)
    vector_peak =
        std::min(vector_peak, 32 * d.core_hz * op.n * 32 / bits_per_element(op.activations));
  double vector = op.flops / std::max(vector_peak * d.engine.convolution_factor * axes, 1.0);
  return combine(std::min(compute, vector), memory,
                 d.operators.launch_seconds * d.engine.fixed_factor, c.sharpness);
}

OperatorTime attention_time(const DeviceModel& d, const Operator& op) {
  const AttentionCoefficients& a = d.operators.attention;
  MathClass cls = math_class(d, op.activations, op.activations);
  double peak = d.unit[static_cast<std::size_t>(cls)].peak * d.power_scale;
  double keys = std::max(op.key_tokens, 1.0);
  // A query tile is at least 16 rows of the matrix unit: grouped heads share one.
  double rows = op.query_tokens * op.group_size;
  double padding = rows < 16 ? 16 / rows : 1;
  // A processor's vector units have no tile to fill.
  if (d.accelerator && d.accelerator->kind == DeviceKind::cpu) padding = 1;
  // One block works on up to 128 queries of a head (or of the heads that share a key).
  bool decode = op.query_tokens < 2;
  const double factor = d.engine.attention_factor * (decode ? 1 : d.engine.prompt_attention_factor);
  double fill = 1;
  if (!decode && d.sm_count > 0) {
    double blocks = op.sequences * op.m * std::ceil(op.query_tokens / 128);
    double waves = blocks / d.sm_count;
    fill = waves / std::ceil(waves);
  }
  double compute =
      op.flops * padding * (keys + a.keys_half) / (keys * peak * a.prefill_ceiling * factor * fill);
  // Products of whole score matrices whose rows do not start at 16 bytes leave the matrix units
  // (NVIDIA, "Matrix Multiplication Background User's Guide", tensor core requirements).
  if (op.scores_kept && std::fmod(op.k * bits_per_element(op.activations), 128) != 0) {
    const MatrixCoefficients& plain = d.operators.matrix[static_cast<std::size_t>(MathClass::fp32)];
    compute = std::max(compute, op.flops / (d.vector_peak * plain.ceiling));
  }
  double bytes = op.data_bytes;
  if (op.timed_alone && d.l2_bytes > 0 && a.warm_rate > 0) {
    const double faster = std::max(1.0, a.warm_rate * d.sm_count / d.bandwidth);
    const double held = resident(d, bytes);
    bytes *= held / faster + 1 - held;
  }
  double memory =
      (bytes + a.half_bytes * d.engine.fixed_factor) / (d.bandwidth * a.decode_ceiling * factor);
  double latency = decode ? a.decode_latency_seconds : a.prefill_latency_seconds;
  return combine(compute, memory, (d.operators.launch_seconds + latency) * d.engine.fixed_factor,
                 3);
}

// A scan token by token runs on the vector units and is bound by its state; over chunks its
// products run on the matrix units as those of attention do.
OperatorTime scan_time(const DeviceModel& d, const Operator& op) {
  double rate = d.vector_peak;
  if (op.matrix_form) {
    MathClass cls = math_class(d, op.activations, op.activations);
    rate = d.unit[static_cast<std::size_t>(cls)].peak * d.power_scale *
           d.operators.attention.prefill_ceiling * d.engine.attention_factor;
  }
  return combine(op.flops / std::max(rate, 1.0), stream_seconds(d, op.data_bytes),
                 d.operators.launch_seconds * d.engine.fixed_factor, 3);
}

// What measured tables of the device say beyond the formula.
OperatorTime refined(const DeviceModel& d, const Operator& op, OperatorTime t) {
  if (!d.operators.grids) return t;
  const GridPlace p = grid_place(d, op);
  if (p.kind == GridKind::none) return t;
  const UtilisationGrid& grid = d.operators.grids->of[static_cast<std::size_t>(p.kind)];
  if (grid.empty()) return t;
  const double longer = std::exp(grid.at(p.at));
  t.seconds *= longer;
  t.compute_seconds *= longer;
  t.memory_seconds *= longer;
  return t;
}

OperatorTime exchange_time(const DeviceModel& d, const Operator& op) {
  const bool combine = op.kind == OperatorKind::expert_combine;
  ExpertExchange x;
  if (op.low_latency)
    x.kind = combine ? ExchangeKind::combine_low_latency : ExchangeKind::dispatch_low_latency;
  else
    x.kind = combine ? ExchangeKind::combine : ExchangeKind::dispatch;
  x.tokens = op.m;
  x.hidden = op.k;
  x.value_bytes = bits_per_element(op.weights) < 16 ? kFp8DispatchBytes : 2;
  x.top_k = op.n;
  x.experts = op.groups;
  x.ranks = op.ranks;
  x.stride = op.stride;
  OperatorTime t;
  t.seconds = d.engine.link_factor * exchange_seconds(d, x);
  t.bound = Bound::link;
  return t;
}

// Blocks of norms and softmax that a multiprocessor works on at one time: 128 threads of 2,048
// (PyTorch, layer_norm_kernel.cu).
constexpr double kResidentRows = 16;

OperatorTime elementwise_time(const DeviceModel& d, const Operator& op) {
  double bytes = beyond_cache(d, op.data_bytes);
  if (op.again_bytes > 0) {
    // Rows between the first and the second reading stay in the cache where they fit.
    const double live = op.row_bytes * kResidentRows * std::max(1.0, d.sm_count);
    const double missed =
        d.l2_bytes > 0 ? std::clamp(1 + std::log2(live / d.l2_bytes) / 2, 0.0, 1.0) : 1;
    bytes += op.again_bytes * missed;
  }
  const ElementwiseCoefficients& e = d.operators.elementwise;
  const double memory =
      e.ceiling > 0 ? stream_seconds(d, bytes, e.ceiling, e.half_bytes) : stream_seconds(d, bytes);
  OperatorTime t = combine(op.flops / std::max(d.vector_peak, 1.0), memory,
                           d.operators.launch_seconds * d.engine.fixed_factor, 3);
  if (op.timed_alone) t.seconds += e.timed_seconds;
  return t;
}

}  // namespace

// Several kernels do products of experts with one scale for a matrix, and a table holds those of
// one server: 262 TFLOPS on an H100, where kernels with a scale for each block, which do the same
// and more, reach 623 (data/measured/ops.csv, moe_layer). Servers choose among kernels by timing
// them (TensorRT-LLM, _torch/autotuner.py).
OperatorTime experts_time(const DeviceModel& d, const Operator& op) {
  OperatorTime t = refined(d, op, matrix_time(d, op));
  if (op.timed_alone || matrix_path(d, op) != MatrixPath::fp8) return t;
  Operator blocks = op;
  blocks.weights = Format::fp8_block;
  if (matrix_path(d, blocks) != MatrixPath::fp8_block) return t;
  const OperatorTime other = refined(d, blocks, matrix_time(d, blocks));
  return other.seconds < t.seconds ? other : t;
}

OperatorTime operator_time(const DeviceModel& d, const Operator& op) {
  switch (op.kind) {
    case OperatorKind::gemm:
      return refined(d, op, matrix_time(d, op));
    case OperatorKind::grouped_gemm:
      return experts_time(d, op);
    case OperatorKind::convolution:
      return convolution_time(d, op);
    case OperatorKind::attention:
      return refined(d, op, attention_time(d, op));
    case OperatorKind::scan:
      return scan_time(d, op);
    case OperatorKind::elementwise:
    case OperatorKind::gather:
      return elementwise_time(d, op);
    case OperatorKind::expert_dispatch:
    case OperatorKind::expert_combine:
      return exchange_time(d, op);
    default:
      break;
  }
  OperatorTime t;
  Collective c = op.kind == OperatorKind::all_reduce       ? Collective::all_reduce
                 : op.kind == OperatorKind::all_gather     ? Collective::all_gather
                 : op.kind == OperatorKind::reduce_scatter ? Collective::reduce_scatter
                 : op.kind == OperatorKind::all_to_all     ? Collective::all_to_all
                                                           : Collective::send;
  t.seconds =
      d.engine.link_factor * collective_seconds(d, c, op.payload_bytes, op.ranks, op.stride);
  t.bound = Bound::link;
  return t;
}

double behind_host(double device_seconds, double host_seconds) {
  const double hi = std::max(device_seconds, host_seconds);
  const double lo = std::min(device_seconds, host_seconds);
  if (lo <= 0) return hi;
  const double square = lo / hi * (lo / hi);
  return hi * std::sqrt(std::sqrt(1 + square * square));
}

double with_host(const DeviceModel& d, double device_seconds, double host_seconds) {
  if (d.accelerator && d.accelerator->kind == DeviceKind::cpu) return device_seconds + host_seconds;
  return behind_host(device_seconds, host_seconds);
}

double list_seconds(const DeviceModel& d, const OperatorList& ops) {
  double t = 0;
  for (const Operator& op : ops) t += op.repeat * operator_time(d, op).seconds;
  return t;
}

}  // namespace trigon
