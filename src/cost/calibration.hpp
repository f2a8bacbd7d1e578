#pragma once
// Coefficients of the operator and engine models, fitted on measurements by `trigon calibrate`
// and read as data (sheets of kind "calibration" under data/calibration/). Allowed keys: device
// family, vendor, engine, operator kind, number class. Never a source or a row.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/estimate.hpp"
#include "base/facts.hpp"
#include "cost/engine_effects.hpp"
#include "cost/expert_exchange.hpp"
#include "cost/messages.hpp"
#include "cost/utilisation_grid.hpp"
#include "hardware/accelerator.hpp"
#include "memory/memory_errors.hpp"

namespace trigon {

// Number classes that share matrix kernels.
enum class MathClass : std::uint8_t { fp32, tf32, half, fp8, int8, fp4, count_ };
constexpr std::size_t kMathClasses = static_cast<std::size_t>(MathClass::count_);
const char* math_class_name(MathClass c);  // "half", as in the sheets

// Kernels of matrix products: those of a class, and those that scale or widen what they read.
enum class MatrixPath : std::uint8_t {
  fp32,
  tf32,
  half,
  fp8,
  int8,
  fp4,
  fp8_block,  // scales for blocks of the reduction
  int8_only,  // 8-bit weights widened to 16 bit
  int4_only,
  count_
};
constexpr std::size_t kMatrixPaths = static_cast<std::size_t>(MatrixPath::count_);
const char* matrix_path_name(MatrixPath p);  // "int4_only", as in the sheets

// Coefficients whose errors move together; ranges add linearly inside a group and in quadrature
// across groups.
enum class ErrorGroup : std::uint8_t { matrix, stream, attention, link, host, memory, count_ };
constexpr std::size_t kErrorGroups = static_cast<std::size_t>(ErrorGroup::count_);

// GEMM: time = launch + (t_compute^s + t_memory^s)^(1/s) with
//   t_compute = 2 m n k / (peak * ceiling * wave^w * k / (k + k_half)),  m, n rounded up to tiles,
//   wave = tiles / (ceil(tiles / SMs) * SMs),
//   t_memory  = bytes / (bandwidth * stream.ceiling).
struct MatrixCoefficients {
  double ceiling = 0;          // share of the dense peak
  double k_half = 0;           // reduction length at which half of the ceiling is reached
  double wave_exponent = 0;    // 1: whole waves are paid, 0: none (split-k, stream-k)
  double sharpness = 3;        // of the roofline's corner
  double latency_seconds = 0;  // beyond a plain launch: quantising inputs, second kernels
  double error = 0;            // relative, one standard deviation
  // Weights widened a second, for each block of rows: a third roof. 0: none.
  double widened_per_second = 0;
  // Operators timed alone take no less: what the host needs to launch them.
  double floor_seconds = 0;
};

struct StreamCoefficients {
  double ceiling = 0;     // share of the memory bandwidth
  double half_bytes = 0;  // size at which half of it is reached
  double error = 0;
  double warm_speedup = 1;  // of what the last-level cache holds, operators timed alone
};

struct AttentionCoefficients {
  double prefill_ceiling = 0;          // share of the matrix peak
  double keys_half = 0;                // keys at which half of that is reached
  double prefill_latency_seconds = 0;  // of one kernel beyond a plain launch
  double decode_ceiling = 0;           // share of the memory bandwidth
  double half_bytes = 0;
  double decode_latency_seconds = 0;
  double error = 0;
  // Bytes a second of one multiprocessor from the last-level cache, operators timed alone; 0: no
  // faster than memory.
  double warm_rate = 0;
};

// Norms, activations and their kin: bytes of a kernel that does nothing else.
struct ElementwiseCoefficients {
  double ceiling = 0;        // share of the memory bandwidth; 0: that of the products' operands
  double half_bytes = 0;     // size at which half of it is reached
  double timed_seconds = 0;  // of a call that is timed alone, beyond the launch
  double error = 0;
};

struct OperatorCoefficients {
  std::array<MatrixCoefficients, kMatrixPaths> matrix{};
  double grouped_factor = 1;  // grouped (expert) matrices reach this share of a plain matrix
  double grouped_latency_seconds = 0;  // sorting tokens to experts, per matrix
  double grouped_error = 0;
  StreamCoefficients stream;
  ElementwiseCoefficients elementwise;
  AttentionCoefficients attention;
  double launch_seconds = 0;  // per operator inside a captured graph
  double launch_error = 0;
  Basis basis = Basis::analytic;               // calibrated on this family, or borrowed
  std::string sheet;                           // calibration/<id> it came from
  std::shared_ptr<const OperatorGrids> grids;  // null: the formulas alone
  Basis grid_basis = Basis::analytic;          // interpolated on this device or its family
};

// A link as collectives see it: time = start + rounds(n) * latency + wire bytes / (one_way *
// ceiling * (payload / (payload + half_bytes))^ramp * (2 / n)^sharing).
struct LinkCoefficients {
  double ceiling = 0, half_bytes = 0, ramp = 1;
  double sharing = 0;  // 0: each rank keeps its own bandwidth, 1: all share one bus
  double latency_seconds = 0, start_seconds = 0, error = 0;
  double small_latency_seconds = 0;  // one-shot all-reduce of small payloads, per call
  // All-reduce inside the switch from so many ranks on (0: never): faster by this factor.
  double switch_reduction_ranks = 0, switch_reduction_gain = 1;
  // A call that the host launches takes no less (one-shot all-reduce outside of a graph).
  double host_launch_seconds = 0;
  std::shared_ptr<const LinkGrids> grids;  // null: the formula alone
  ExchangeTable exchange{};                // kernels made for experts, of links inside a node
  Basis basis = Basis::analytic;
  std::string sheet;
};

// The family whose kernels a family runs, itself unless said otherwise. Libraries compile one code
// for compute capabilities 10.0 and 10.3 (CUDA C++ Programming Guide, "Family-Specific Features":
// compute_100f; TransformerEngine tests for `FamilySpecific<100>`), so what was timed on one tells
// of the other.
std::string_view kernel_family(std::string_view family);

class Calibration {
 public:
  static Result<Calibration> load(const FactStore& store);
  // With operators and links of the sheets of another kind: those fitted without one fold.
  Calibration with_operators(const FactStore& store, std::string_view kind) const;

  // Falls back family -> vendor -> any. Errors when even "any" is absent.
  Result<OperatorCoefficients> operators(const Accelerator& a) const;
  // A link by its id, else any of its reach (inside a node, between nodes).
  Result<LinkCoefficients> link(std::string_view id, bool between_nodes) const;
  // The engine's effects on this device, moved by the shift of this calibration.
  Result<EngineCoefficients> engine(const EngineSubject& subject) const;

  // The same coefficients with one group moved by `sigmas` of its error; for ranges.
  Calibration moved(ErrorGroup group, double sigmas) const;
  // With other engine coefficients: those fitted without one fold, or a trial of a fit.
  Calibration with_engines(std::shared_ptr<const EngineTable> table) const;
  const EngineTable& engines() const { return *engines_; }

  // How far an engine's memory may be from what is counted for it.
  MemoryErrors memory_errors(std::string_view engine, bool training) const {
    return find_memory_errors(*memory_errors_, engine, training);
  }
  Calibration with_memory_errors(std::shared_ptr<const MemoryErrorTable> table) const;

 private:
  void read_operators(const FactStore& store, std::string_view kind);

  std::map<std::string, const FactSheet*, std::less<>> operators_, links_;
  std::map<std::string, std::shared_ptr<const OperatorGrids>, std::less<>> grids_;
  std::map<std::string, std::shared_ptr<const LinkGrids>, std::less<>> link_grids_;
  std::shared_ptr<const EngineTable> engines_;
  std::shared_ptr<const MemoryErrorTable> memory_errors_ = std::make_shared<MemoryErrorTable>();
  std::array<double, kErrorGroups> shift_{};
};

}  // namespace trigon
