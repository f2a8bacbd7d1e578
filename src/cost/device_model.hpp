#pragma once
// One accelerator with its coefficients resolved: what operator and collective times are
// computed from. Plain numbers only.

#include "cost/calibration.hpp"
#include "hardware/cluster.hpp"
#include "lower/operators.hpp"

namespace trigon {

struct MathUnit {
  double peak = 0;  // FLOP/s, dense; 0: the device cannot
  MathMode mode = MathMode::fp32_vector;
};

struct DeviceModel {
  const Accelerator* accelerator = nullptr;
  std::array<MathUnit, kMathClasses> unit{};  // best unit per class
  double vector_peak = 0;                     // FLOP/s of elementwise arithmetic
  double bandwidth = 0;                       // B/s
  double l2_bytes = 0;
  double sm_count = 0;    // 0: unknown, no wave effect
  double core_hz = 0;     // cores times clock; 0: unknown, their own bandwidth is no roof
  double core_share = 1;  // of a processor's cores that work
  OperatorCoefficients operators;
  EngineCoefficients engine;
  bool integer_products = false;  // weight-only formats meet activations in 8 bit
  double lookup_rows = 1;         // rows that one look-up of a codebook serves
  double power_scale = 1;  // sustained clock against that of the cards the ceilings come from

  struct Wire {
    double one_way = 0;  // B/s per rank
    PeerTopology topology = PeerTopology::none;
    int mesh = 0;  // devices that a full mesh connects, where more than are used
    LinkCoefficients c;
  };
  Wire intra;
  bool custom_all_reduce = true;  // small sums inside a node by the engine's own kernels
  std::optional<Wire> inter;
  int per_node = 1;
};

// NVIDIA's boards for consumers, by family.
bool consumer_board(std::string_view family);
// Peaks, bandwidth and unit counts of the accelerator; no coefficients.
void fill_units(DeviceModel& d, const Accelerator& a);

// Products in FP16 are summed in FP16: twice the rate on GeForce.
void accumulate_in_half(DeviceModel& d);

Result<DeviceModel> make_device_model(const Cluster& cluster, const Calibration& calibration,
                                      std::string_view engine, bool training,
                                      std::string_view weight_class, Format weights,
                                      std::string_view library = {}, bool eager = false);

// With the coefficients of operators and links, and no engine's.
Result<DeviceModel> make_operator_device(const Cluster& cluster, const Calibration& calibration);

// The class a product of these formats runs in on this device: FP8 weights on a device without
// FP8 units fall back to 16 bit, weight-only formats always do.
MathClass math_class(const DeviceModel& d, Format weights, Format activations);

// The kernels that a product takes.
MatrixPath matrix_path(const DeviceModel& d, const Operator& op);

enum class Bound : std::uint8_t { compute, bandwidth, link, latency };

struct OperatorTime {
  double seconds = 0;
  Bound bound = Bound::compute;
  double compute_seconds = 0, memory_seconds = 0;  // the two roofs
};

// Time of one operator on one rank. Valid for any positive dimensions.
OperatorTime operator_time(const DeviceModel& d, const Operator& op);
// Launches run ahead of the device: work takes as long as the slower of both, a little more where
// they are near each other.
double behind_host(double device_seconds, double host_seconds);
// A processor is its own host: what it launches it also does.
double with_host(const DeviceModel& d, double device_seconds, double host_seconds);
// Sum over a list: the time of one pass over those operators, launches included.
double list_seconds(const DeviceModel& d, const OperatorList& ops);

// Collectives. `payload` is the full buffer (nccl-tests' convention). `ranks` consecutive ranks
// with `stride` between them: stride 1 fills nodes first.
enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, send };
// Bytes that each rank puts on the wire per byte of the full buffer, over rings.
double wire_share(Collective c, double ranks);
// All-reduces take the faster of the library's and the one-shot kernels unless one is asked for.
enum class CollectiveKernels : std::uint8_t { any, library, library_rings, one_shot };
double collective_seconds(const DeviceModel& d, Collective c, double payload, int ranks,
                          int stride = 1, CollectiveKernels kernels = CollectiveKernels::any);

}  // namespace trigon
