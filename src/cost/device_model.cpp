#include "cost/device_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>

namespace trigon {
namespace {

MathUnit best(const Accelerator& a, std::initializer_list<MathMode> modes) {
  MathUnit u;
  for (MathMode m : modes)
    if (auto p = a.peak_of(m); p && p->in_base() > u.peak) u = {p->in_base(), m};
  return u;
}

MathUnit first(const Accelerator& a, std::initializer_list<MathMode> modes) {
  for (MathMode m : modes)
    if (auto p = a.peak_of(m); p && p->in_base() > 0) return {p->in_base(), m};
  return {};
}

// Clock under sustained matrix work against the one that the peak is quoted at: dynamic power goes
// with about its cube, so it goes with the cube root of the watts a TFLOP/s of 16-bit peak. Over
// NVIDIA's cards from 0.6 to 2.7 W a TFLOP/s networks and prompts follow it. Volta and Turing are
// made in 12 nm: 300 W for 125 TFLOP/s where the same board in 7 nm has 400 W for 312.
double sustained_clock(const Accelerator& a, double half_peak, double watts) {
  double each = watts / (half_peak * 1e-12);
  if (a.architecture == "volta" || a.architecture == "turing") each /= (300. / 125) / (400. / 312);
  // A card with watts to spare runs at its boost clock, consumer boards some tenth above it.
  return std::min(consumer_board(a.family) ? 1.28 : 1.16, std::cbrt(each));
}

// The same of the cards on which the ceilings of a family were measured: A100 and H100 SXM, L40S,
// B200. Other families borrow the mean of their ceilings.
double measured_clock(std::string_view family) {
  constexpr double kGa100 = 400. / 312, kHopper = 700. / 989, kAda = 350. / 362,
                   kB200 = 1000. / 2250;
  if (family == "ampere_ga100") return std::cbrt(kGa100);
  if (family == "hopper") return std::cbrt(kHopper);
  if (family == "ada_pro") return std::cbrt(kAda);
  if (family == "blackwell") return std::cbrt(kB200);
  return std::cbrt(std::pow(kGa100 * kHopper * kAda * kB200, 0.25));
}

// What a what-if says of a link's latency.
void change_latency(LinkCoefficients& c, const Link& l) {
  if (l.latency) c.latency_seconds = l.latency->in_base();
  for (double* v : {&c.latency_seconds, &c.start_seconds, &c.small_latency_seconds})
    *v *= l.latency_factor;
}

}  // namespace

bool consumer_board(std::string_view family) {
  constexpr std::array<std::string_view, 4> kConsumer = {"turing_geforce", "ampere_geforce",
                                                         "ada_geforce", "blackwell_geforce"};
  return std::find(kConsumer.begin(), kConsumer.end(), family) != kConsumer.end();
}

void fill_units(DeviceModel& d, const Accelerator& a) {
  d.accelerator = &a;
  auto& u = d.unit;
  auto set = [&](MathClass c, MathUnit unit) { u[static_cast<std::size_t>(c)] = unit; };
  using M = MathMode;
  set(MathClass::fp32, best(a, {M::fp32_vector, M::fp32_matrix}));
  set(MathClass::tf32, first(a, {M::tf32_matrix}));
  // Matrix units win over vector units; without either, 16-bit values are computed in fp32.
  MathUnit half =
      first(a, {M::bf16_matrix, M::fp16_matrix_fp32_accumulate, M::fp16_matrix_fp16_accumulate});
  // GeForce halves fp32 accumulation for fp16; bf16 there runs at that same rate.
  if (auto p = a.peak_of(M::fp16_matrix_fp32_accumulate); p && half.peak < p->in_base())
    half = {p->in_base(), M::fp16_matrix_fp32_accumulate};
  if (half.peak == 0) half = best(a, {M::fp16_vector, M::fp32_vector, M::fp32_matrix});
  MathUnit int8 = first(a, {M::int8_matrix});
  if (a.kind == DeviceKind::cpu) {
    // Dot products of the vector units, where a processor has no matrix unit; without either 8-bit
    // values are widened as 16-bit ones are.
    if (!a.peak_of(M::bf16_matrix))
      half = best(a, {M::bf16_vector, M::fp16_vector, M::fp32_vector});
    if (int8.peak == 0) int8 = first(a, {M::int8_vector});
  }
  set(MathClass::half, half);
  set(MathClass::fp8, first(a, {M::fp8_matrix}));
  set(MathClass::int8, int8);
  set(MathClass::fp4, first(a, {M::fp4_matrix}));
  d.vector_peak = std::max(u[0].peak, 1.0);
  if (u[0].peak == 0) d.vector_peak = half.peak;
  d.bandwidth = a.memory_bandwidth.in_base();
  d.l2_bytes = a.l2 ? a.l2->in_base() : 0;
  d.sm_count = a.sm_count.value_or(0);
  d.core_hz = d.sm_count * a.boost_hz.value_or(0);
}

namespace {

// What one core streams from memory: its line fill buffers and prefetchers keep so many lines on
// the way, whatever the channels could deliver; desktops of 50 to 90 GB/s need three to six of
// them (notes.elimelt.com, benchmarks/bandwidth: 20 to 30 GB/s of one core as a rule, 24.9 of a
// loop over single values; wide loads are at the upper end).
constexpr double kCoreBandwidth = 30e9;

// Where a maker says how many lines may be on the way, that many over the time that one takes: of
// Zen 3 and later 64 of 64 bytes from a core's cache to the shared one (AMD's launch of Zen 3,
// anandtech.com 16214), of 80 ns each with DDR4 and DDR5.
constexpr std::array<std::string_view, 4> kLongQueues = {"zen3", "zen4", "zen5", "zen5_mobile"};
constexpr double kLongQueueBandwidth = 64 * 64 / 80e-9;

double core_bandwidth(const Accelerator& a) {
  const bool long_queue =
      std::find(kLongQueues.begin(), kLongQueues.end(), a.family) != kLongQueues.end();
  return long_queue ? kLongQueueBandwidth : kCoreBandwidth;
}

// Threads of one parallel region meet at its end: a few microseconds on one socket, more on many
// cores (EPCC OpenMP microbenchmarks: barriers of 1 to 5 us).
constexpr double kRegionSeconds = 3e-6;

// STREAM reaches 80 to 90 % of what the channels could move, and oneDNN's and OpenBLAS's large
// products about as much of what the cores could multiply (intel.com, oneDNN performance; HPL on
// the Top500's machines of processors: 65 to 85 % of peak at base clocks).
constexpr double kProcessorStream = 0.85, kProcessorProducts = 0.8;

// A core's caches feed it several times faster than memory does: 10 to 20 bytes a cycle from the
// last level against two to three of its share of the channels.
constexpr double kCacheGain = 5;

// The coefficients of operators were timed on cards. What of them is of cards alone (bytes in
// flight until their memory is busy, waves of blocks, kernels launched) has other values here.
void as_processor(DeviceModel& d) {
  OperatorCoefficients& o = d.operators;
  for (MatrixCoefficients& m : o.matrix) {
    m.ceiling = kProcessorProducts;
    m.k_half = 16;  // one cache line of 32-bit values
    m.wave_exponent = 0;
    m.latency_seconds = 0;
    m.widened_per_second = 0;
  }
  o.grouped_factor = 1;
  o.grouped_latency_seconds = 0;
  o.stream.ceiling = kProcessorStream;
  o.stream.half_bytes = 0;
  o.attention.prefill_ceiling = kProcessorProducts / 2;  // softmax between two short products
  o.attention.decode_ceiling = kProcessorStream;
  o.attention.half_bytes = 0;
  o.attention.prefill_latency_seconds = o.attention.decode_latency_seconds = 0;
  o.launch_seconds = kRegionSeconds;
  o.grids = nullptr;
  o.basis = Basis::analytic;
  d.sm_count = 0;
}

// So many of its cores work.
void use_threads(DeviceModel& d, const Accelerator& a, std::optional<double> threads) {
  const double cores = a.sm_count.value_or(1);
  const double n = std::clamp(threads.value_or(cores), 1.0, cores);
  for (MathUnit& u : d.unit) u.peak *= n / cores;
  d.vector_peak *= n / cores;
  d.core_share = n / cores;
  d.bandwidth = std::min(d.bandwidth, n * core_bandwidth(a));
}

}  // namespace

void accumulate_in_half(DeviceModel& d) {
  const Accelerator& a = *d.accelerator;
  MathUnit& half = d.unit[static_cast<std::size_t>(MathClass::half)];
  const auto peak = a.peak_of(MathMode::fp16_matrix_fp16_accumulate);
  if (!peak || peak->in_base() <= half.peak) return;
  if (a.vendor == "nvidia" && a.board_power) {
    const double watts = a.board_power->in_base();
    d.power_scale *=
        sustained_clock(a, peak->in_base(), watts) / sustained_clock(a, half.peak, watts);
  }
  half = {peak->in_base(), MathMode::fp16_matrix_fp16_accumulate};
}

Result<DeviceModel> make_operator_device(const Cluster& cluster, const Calibration& calibration) {
  const Accelerator& a = *cluster.accelerator;
  DeviceModel d;
  fill_units(d, a);
  if (d.unit[static_cast<std::size_t>(MathClass::half)].peak == 0)
    return fail(ErrorCode::missing_fact, message(CostMessage::no_matrix_peak, a.name, "16 bit"),
                "accelerator/" + a.id + "#peak");
  auto ops = calibration.operators(a);
  if (!ops) return tl::unexpected(ops.error());
  d.operators = *ops;
  d.per_node = cluster.per_node;
  d.intra.one_way = cluster.intra.one_way.in_base();
  d.intra.topology = cluster.intra.topology;
  d.intra.mesh = cluster.intra.mesh;
  auto near = calibration.link(cluster.intra.id, false);
  if (!near) return tl::unexpected(near.error());
  d.intra.c = *near;
  change_latency(d.intra.c, cluster.intra);
  if (cluster.inter) {
    auto far = calibration.link(cluster.inter->id, true);
    if (!far) return tl::unexpected(far.error());
    d.inter = DeviceModel::Wire{cluster.inter->one_way.in_base(), cluster.inter->topology, 0, *far};
    change_latency(d.inter->c, *cluster.inter);
  }
  if (a.vendor == "nvidia" && a.board_power)
    d.power_scale = sustained_clock(a, d.unit[static_cast<std::size_t>(MathClass::half)].peak,
                                    a.board_power->in_base()) /
                    measured_clock(kernel_family(a.family));
  if (a.kind == DeviceKind::cpu) {
    as_processor(d);
    use_threads(d, a, cluster.card.threads);
  }
  if (cluster.card.power_limit && a.board_power &&
      cluster.card.power_limit->in_base() < a.board_power->in_base()) {
    // Dynamic power goes with about the cube of the clock, so the clock with its cube root.
    double share = cluster.card.power_limit->over(*a.board_power);
    d.power_scale *= std::min(1.0, std::cbrt(share));
  }
  return d;
}

Result<DeviceModel> make_device_model(const Cluster& cluster, const Calibration& calibration,
                                      std::string_view engine, bool training,
                                      std::string_view weight_class, Format weights,
                                      std::string_view library, bool eager) {
  auto d = make_operator_device(cluster, calibration);
  if (!d) return d;
  EngineSubject subject =
      engine_subject(engine, *cluster.accelerator, training, weight_class, weights, library);
  subject.eager = eager;
  auto eng = calibration.engine(subject);
  if (!eng) return tl::unexpected(eng.error());
  d->engine = *eng;
  if (cluster.accelerator->kind == DeviceKind::cpu)
    d->engine.cache_speedup = std::max(d->engine.cache_speedup, kCacheGain);
  return d;
}

MathClass math_class(const DeviceModel& d, Format weights, Format activations) {
  auto has = [&](MathClass c) { return d.unit[static_cast<std::size_t>(c)].peak > 0; };
  if (weights == Format::tf32 || activations == Format::tf32)
    return has(MathClass::tf32) ? MathClass::tf32 : MathClass::fp32;
  switch (dense_of(weights)) {
    case Format::f32:
    case Format::f64:
      return activations == Format::f32 || activations == Format::f64 ? MathClass::fp32
                                                                      : MathClass::half;
    case Format::f8_e4m3:
    case Format::f8_e5m2:
    case Format::fp8_tensor:
    case Format::fp8_block:
    case Format::mxfp8:
      return has(MathClass::fp8) ? MathClass::fp8 : MathClass::half;
    case Format::nvfp4:
    case Format::mxfp4:
      return has(MathClass::fp4) ? MathClass::fp4 : MathClass::half;
    case Format::int8:
    case Format::i8:
      return has(MathClass::int8) ? MathClass::int8 : MathClass::half;
    default:
      break;
  }
  if (d.integer_products && info(weights).weight_only && has(MathClass::int8))
    return MathClass::int8;
  // 16-bit weights are widened where the arithmetic is asked to be in 32 bit.
  if ((activations == Format::f32 || activations == Format::f64) && !info(weights).weight_only)
    return MathClass::fp32;
  return MathClass::half;
}

MatrixPath matrix_path(const DeviceModel& d, const Operator& op) {
  const FormatInfo& f = info(op.weights);
  if (op.widened || (f.weight_only && !f.gguf))
    return bits_per_element(op.weights) < 6 ? MatrixPath::int4_only : MatrixPath::int8_only;
  const MathClass c = math_class(d, op.weights, op.activations);
  if (c == MathClass::fp8 && op.weights == Format::fp8_block) return MatrixPath::fp8_block;
  return static_cast<MatrixPath>(c);
}

}  // namespace trigon
