#include "evidence/engine_priors.hpp"

namespace trigon {

bool is_overhead(EngineParameter p) {
  return p >= EngineParameter::operator_overhead && p <= EngineParameter::request_overhead;
}

namespace {

// Standard deviation of an effect's logarithm, by what it is keyed by. Number classes and engines
// differ most, devices of one family least.
double level_spread(EngineLevel level) {
  switch (level) {
    case EngineLevel::kind:
      return 1;
    case EngineLevel::weight_class:
    case EngineLevel::library:
    case EngineLevel::engine:
      return 0.35;
    case EngineLevel::library_class:
    case EngineLevel::engine_class:
      return 0.3;
    case EngineLevel::vendor:
    case EngineLevel::line:
      return 0.25;
    case EngineLevel::format:
    case EngineLevel::family:
    case EngineLevel::library_format:
    case EngineLevel::library_vendor:
    case EngineLevel::engine_format:
    case EngineLevel::engine_vendor:
    case EngineLevel::engine_family:
    case EngineLevel::engine_family_class:
      return 0.2;
    case EngineLevel::family_class:
      return 0.15;
    case EngineLevel::device:
    case EngineLevel::engine_device:
    case EngineLevel::engine_device_class:
      return 0.12;
    case EngineLevel::count_:
      break;
  }
  return 0;
}

// How far effects of a kind of work may lie from one, against `level_spread`: what predicts folds
// that were held out best.
double kind_spread(EngineKind kind) {
  switch (kind) {
    case EngineKind::serve_encoder:
      return 1;
    case EngineKind::train_encoder:
      return 0.3;
    case EngineKind::serve_graph:
    case EngineKind::train_graph:
      return 0.75;
    case EngineKind::train:
      return 0.5;
    default:
      return 0.7;
  }
}

// Overheads spread over orders of magnitude, rates do not.
double parameter_spread(EngineParameter p) {
  switch (p) {
    case EngineParameter::operator_overhead:
    case EngineParameter::step_overhead:
    case EngineParameter::layer_overhead:
    case EngineParameter::request_overhead:
      return 2.5;
    case EngineParameter::core_stream:
      return 2;
    case EngineParameter::prompt_attention:
      return 1.5;
    case EngineParameter::fixed:
      return 1.5;
    case EngineParameter::convolution_k_half:
    case EngineParameter::line_convolution:
    case EngineParameter::volume_convolution:
      return 1.5;
    case EngineParameter::stream:
    case EngineParameter::cache:
      return 0.7;
    default:
      return 1;
  }
}

// How far the rates of engines as a whole may lie from those of the operator tables: of servers,
// and of networks that train, whose kernels are the same libraries'. Image networks in 16 bit and
// 32 are met within a tenth without any fit; what is not (hosts, samples of many lengths) must not
// be explained by slow products beside impossible streams.
constexpr double kOfTables = 0.1;
bool is_rate(EngineParameter p) {
  return p == EngineParameter::compute || p == EngineParameter::stream ||
         p == EngineParameter::core_stream || p == EngineParameter::attention ||
         p == EngineParameter::prompt_attention || p == EngineParameter::link;
}
// How far a parameter of all engines together may lie from `neutral_coefficients`; 0: by its level.
double kind_hold(EngineKind kind, EngineParameter p) {
  if (kind == EngineKind::serve) return is_rate(p) ? kOfTables : 0;
  if (kind == EngineKind::train) return is_rate(p) && p != EngineParameter::link ? kOfTables : 0;
  if (kind != EngineKind::train_graph) return 0;
  if (p == EngineParameter::convolution_k_half) return 3 * kOfTables;  // a length, not a rate
  const bool rate = is_rate(p) || p == EngineParameter::convolution;
  return rate && p != EngineParameter::link ? kOfTables : 0;
}

}  // namespace

bool knows(EngineKind kind, EngineLevel level, EngineParameter p) {
  // How long a reduction must be is a matter of a card's pipelines, not of who calls the library.
  if (kind == EngineKind::train_graph && p == EngineParameter::convolution_k_half)
    return level == EngineLevel::kind || level == EngineLevel::vendor ||
           level == EngineLevel::family || level == EngineLevel::weight_class;
  if (kind != EngineKind::serve) return true;
  if (!is_overhead(p) && p != EngineParameter::link && p != EngineParameter::overlap &&
      p != EngineParameter::prompt_attention)
    return true;
  // A library's module of a quantised matrix may be many launches where a plain one is one.
  if (level == EngineLevel::engine_format && p == EngineParameter::layer_overhead) return true;
  switch (level) {
    case EngineLevel::weight_class:
    case EngineLevel::format:
    case EngineLevel::family_class:
    case EngineLevel::library_class:
    case EngineLevel::library_format:
    case EngineLevel::engine_class:
    case EngineLevel::engine_format:
    case EngineLevel::engine_family_class:
    case EngineLevel::engine_device_class:
      return false;
    default:
      return true;
  }
}

bool timed_by_tables(EngineKind kind, const EngineSubject& s) {
  return kind == EngineKind::serve && s.vendor == "nvidia" && !s.own_products &&
         (s.weight_class == "half" || s.weight_class == "fp8");
}

double hold_of(EngineKind kind, EngineLevel level, EngineParameter p) {
  // What an effect does not know is held so tightly that it stays at one.
  if (!knows(kind, level, p)) return 1e12;
  double spread = level_spread(level) * parameter_spread(p);
  const bool free_engines =
      kind == EngineKind::serve && (level == EngineLevel::engine || level == EngineLevel::library);
  if (level != EngineLevel::kind && !free_engines) spread *= kind_spread(kind);
  // Rates of all engines together are those that the operator tables timed.
  if (const double held = kind_hold(kind, p); held > 0 && level == EngineLevel::kind) spread = held;
  return 1 / (spread * spread);
}

EngineCoefficients neutral_coefficients(EngineKind kind) {
  EngineCoefficients c;
  // A launch from the host takes a few microseconds; a captured layer is a launch or two.
  c.operator_overhead_seconds = 5e-6;
  c.layer_overhead_seconds = 2e-5;
  c.step_overhead_seconds = 5e-4;
  c.request_overhead_seconds = 1e-3;
  if (kind == EngineKind::serve) c.core_stream = 16;
  // Kernels between others hide half of their launches and ramps.
  if (fitted_parameter(kind, EngineParameter::fixed)) c.fixed_factor = 0.5;
  switch (kind) {
    case EngineKind::train:
    case EngineKind::train_encoder:
      // Training launches some thirty kernels a layer from the host.
      c.layer_overhead_seconds = 1.5e-4;
      c.overlap = 0.8;
      break;
    case EngineKind::serve:
      // So does a server that replays no graph.
      c.layer_overhead_seconds = 1.5e-4;
      break;
    case EngineKind::train_graph:
      c.overlap = 0.8;
      [[fallthrough]];
    case EngineKind::serve_graph:
      c.cache_speedup = 2;
      c.step_overhead_seconds = 2e-4;
      break;
    default:
      break;
  }
  for (std::size_t p = 0; p < kEngineParameters; ++p)
    if (is_overhead(static_cast<EngineParameter>(p)) &&
        !fitted_parameter(kind, static_cast<EngineParameter>(p)))
      c.*engine_parameters()[p].field = 0;
  return c;
}

bool fitted_parameter(EngineKind kind, EngineParameter p) {
  const bool graph = kind == EngineKind::serve_graph || kind == EngineKind::train_graph;
  const bool training = kind == EngineKind::train || kind == EngineKind::train_encoder ||
                        kind == EngineKind::train_graph;
  switch (p) {
    case EngineParameter::convolution:
    case EngineParameter::convolution_k_half:
    case EngineParameter::cache:
    case EngineParameter::operator_overhead:
      return graph;
    case EngineParameter::layer_overhead:
      return !graph;
    case EngineParameter::line_convolution:
    case EngineParameter::volume_convolution:
      return kind == EngineKind::train_graph;
    case EngineParameter::request_overhead:
    case EngineParameter::core_stream:
    case EngineParameter::prompt_attention:
      return kind == EngineKind::serve;
    case EngineParameter::fixed:
      // Networks have `operator_overhead` for launches.
      return !training && !graph;
    case EngineParameter::link:
      return kind != EngineKind::serve_graph;
    case EngineParameter::overlap:
      return training;
    default:
      return true;
  }
}

}  // namespace trigon
