#pragma once
// What an engine adds to the operators: its kernels against those that the operator tables timed,
// and its host. Coefficients are a product of effects, coarse to fine: of the kind of work, the
// number format, the device, the engine, and of their pairs. A fit holds the finer ones to one, so
// what was never measured falls back to what is known of its parts. Allowed keys: engine, device,
// family, vendor, weight class, format. Never a source or a row.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/estimate.hpp"
#include "base/facts.hpp"
#include "hardware/accelerator.hpp"
#include "model/format.hpp"

namespace trigon {

struct EngineCoefficients {
  double compute_factor = 1;  // multiplies matrix ceilings
  double stream_factor = 1;   // multiplies bandwidth ceilings
  // Bytes a clock and core that kernels keep in flight: a bandwidth roof of their own, below that
  // of the memory where few cores share much bandwidth.
  double core_stream = 64;
  double fixed_factor = 1;               // multiplies what an operator takes whatever its size
  double attention_factor = 1;           // multiplies both roofs of attention
  double prompt_attention_factor = 1;    // and these of prompts, whose kernels are others
  double convolution_factor = 1;         // multiplies the compute roof of convolutions
  double convolution_k_half = 64;        // reduction length at which half of that is reached
  double line_convolution_factor = 1;    // multiplies that roof over one axis, as over time
  double volume_convolution_factor = 1;  // and over three
  double cache_speedup = 1;              // graphs: of values that stay in the last-level cache
  double link_factor = 1;                // multiplies the time of collectives
  // Graphs: host time to launch one operator; a pass takes no less than all its launches.
  double operator_overhead_seconds = 0;
  double step_overhead_seconds = 0;   // scheduler, sampling, input preparation of one step
  double layer_overhead_seconds = 0;  // launches that the device waits for: least time a layer
  double request_overhead_seconds =
      0;               // once a request: API, tokenizing, sampling of the first token
  double overlap = 1;  // training: share of communication that compute hides
  // Of end-to-end times: log, one standard deviation; where arithmetic binds, where the rest does.
  double compute_error = 0, stream_error = 0;
  // The errors are of end-to-end times, so they stand for those of all operators too.
  bool end_to_end = false;
  Basis basis = Basis::analytic;
  std::string sheet;  // the finest effect: "engines#serve/vllm/hopper/half"
};

enum class EngineParameter : std::uint8_t {
  compute,
  stream,
  core_stream,
  fixed,
  attention,
  prompt_attention,
  convolution,
  convolution_k_half,
  line_convolution,
  volume_convolution,
  cache,
  link,
  operator_overhead,
  step_overhead,
  layer_overhead,
  request_overhead,
  overlap,
  count_
};
constexpr std::size_t kEngineParameters = static_cast<std::size_t>(EngineParameter::count_);

struct ParameterInfo {
  const char* name;  // its key in the sheets
  double EngineCoefficients::*field;
  double low, high;  // what is physically possible; products are held to it
};
const std::array<ParameterInfo, kEngineParameters>& engine_parameters();

// Kinds of work that share nothing: their coefficients mean different things.
enum class EngineKind : std::uint8_t {
  serve,
  train,
  serve_encoder,  // stacks that do not generate: one pass over whole inputs
  train_encoder,
  serve_graph,
  train_graph,
  count_
};
constexpr std::size_t kEngineKinds = static_cast<std::size_t>(EngineKind::count_);
const char* engine_kind_name(EngineKind k);  // "serve-graph"
// The most that a parameter can be in this kind of work. Hosts launch an eager operator in 10 to 60
// us; a scheduler takes 0.5 to 2 ms a step, old ones in Python a few more; an API and a tokenizer
// some 15 ms a request. Servers call the libraries whose collectives were timed. What a fit wants
// beyond stands for something else.
double largest(EngineKind k, EngineParameter p);

// What a set of coefficients is of.
struct EngineSubject {
  EngineKind kind = EngineKind::serve;
  std::string_view engine, vendor, family, device, weight_class;
  Format format = Format::unknown;  // of most weights
  std::string_view library;         // of kernels that several engines share; empty: its own
  bool own_products = false;        // EnginePolicy::own_products
  bool eager = false;               // a framework launches each operation of a layer by itself
  std::string_view line;            // of boards that its families share: "geforce"
};
EngineSubject engine_subject(std::string_view engine, const Accelerator& a, bool training,
                             std::string_view weight_class, Format format,
                             std::string_view library = {});

// Coarse to fine. A name lists what an effect is keyed by, beside the kind.
enum class EngineLevel : std::uint8_t {
  kind,
  weight_class,
  format,
  vendor,
  line,
  family,
  device,
  family_class,
  library,
  library_class,
  library_format,
  library_vendor,
  engine,
  engine_class,
  engine_format,
  engine_vendor,
  engine_family,
  engine_family_class,
  engine_device,
  engine_device_class,
  count_
};
constexpr std::size_t kEngineLevels = static_cast<std::size_t>(EngineLevel::count_);

// The same for a subject: 16-bit products of servers on NVIDIA's cards are those of the libraries
// that the tables timed, and boxes of one card differ by a tenth.
double largest(const EngineSubject& s, EngineParameter p);

// "serve/vllm/device:h100/half/": kind, engine, scope, class, format; empty where it is not keyed.
// A library stands in the engine's place, "serve/library:ggml///"; no key without one.
std::string effect_key(const EngineSubject& s, EngineLevel level);

// Multipliers of the parameters; of the level `kind`, the parameters themselves.
struct EngineEffect {
  std::array<double, kEngineParameters> factor;
  std::int64_t rows = 0;  // measured rows that it was fitted on
  EngineEffect() { factor.fill(1); }
};

// How far times of an engine are from measurements, by "kind/engine/family", coarser where a part
// is empty. `strange` is of devices that the engine was never measured on.
struct EngineErrors {
  double compute = 0, stream = 0;
  std::int64_t rows = 0;
};

struct EngineTable {
  std::string id;  // of the sheet
  std::map<std::string, EngineEffect, std::less<>> effects;
  std::map<std::string, EngineErrors, std::less<>> errors, strange;

  // The product of all effects of the subject. Absent when the kind was never measured.
  std::optional<EngineCoefficients> of(const EngineSubject& s) const;
};
EngineTable read_engine_table(const FactSheet& sheet);

}  // namespace trigon
