#pragma once
// One accelerator as its maker and driver describe it. Every rate is dense: 2:4 sparsity is a
// capability, never folded into a peak.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/facts.hpp"
#include "base/quantity.hpp"
#include "hardware/messages.hpp"

namespace trigon {

// A version of CUDA that programs are built with: "11.6".
struct CudaVersion {
  int major = 0, minor = 0;
  bool operator<(const CudaVersion& o) const {
    return major != o.major ? major < o.major : minor < o.minor;
  }
  static std::optional<CudaVersion> read(std::string_view text);
  std::string written() const { return std::to_string(major) + "." + std::to_string(minor); }
};

// What an arithmetic unit multiplies, on which unit, and what it accumulates in.
enum class MathMode : std::uint8_t {
  fp64_vector,
  fp64_matrix,
  fp32_vector,
  fp32_matrix,
  tf32_matrix,
  fp16_vector,
  fp16_matrix_fp16_accumulate,
  fp16_matrix_fp32_accumulate,
  bf16_matrix,
  fp8_matrix,
  fp8_matrix_fp16_accumulate,
  int8_matrix,
  int4_matrix,
  fp4_matrix,
  int8_vector,  // dot products of the vector units (dp4a), where there is no matrix unit
  int4_vector,
  bf16_vector,  // the same of 16 bit (AVX512_BF16, BFMMLA)
  count_
};
constexpr std::size_t kMathModes = static_cast<std::size_t>(MathMode::count_);

// "fp8_matrix"; its fact is "peak.fp8_matrix_tflops", of integer modes "peak.int8_matrix_tops".
std::string_view name_of(MathMode m);
std::string peak_key(MathMode m);

// A `cpu` computes where its memory is: its bandwidth is that of all channels of one socket, its
// units are cores, nothing is copied to it, and several of them are sockets.
enum class DeviceKind : std::uint8_t { gpu, apu, cpu, npu };

// How peers inside one node reach each other.
enum class PeerTopology : std::uint8_t {
  none,          // through PCIe and the host
  bridge_pair,   // NVLink bridge between two cards
  mesh,          // direct links to each peer: one pair gets a share of the total
  fabric_switch  // any pair gets the whole
};

std::string_view name_of(PeerTopology t);
std::optional<PeerTopology> topology_by_name(std::string_view name);

struct PeerLink {
  std::string type;  // "nvlink4", "xgmi", "roce" ... empty when there is none
  PeerTopology topology = PeerTopology::none;
  BytesPerSecond one_way{};    // per device, all its links together, one direction
  BytesPerSecond both_ways{};  // as vendors quote it: both directions added
};

// A range for what is not known exactly.
struct Range {
  double low = 0, value = 0, high = 0;
};

struct Accelerator {
  std::string id;            // "h100-sxm-80gb"
  std::string name;          // "H100 SXM5 80GB"
  std::string vendor;        // "nvidia", "amd", "intel", "apple", ...
  std::string architecture;  // "hopper", "ada", "cdna3", ... a slug
  std::string family;        // the calibration family: architecture, split by market where rates
                             // per SM differ ("ada_geforce", "ada_pro"); never empty
  DeviceKind kind = DeviceKind::gpu;
  std::string form_factor;  // "sxm5", "pcie", "oam", "laptop", "soc", ... a slug, may be empty
  std::optional<double> compute_capability;  // NVIDIA: 9.0
  std::string gfx;                           // AMD: "gfx942"
  std::string launch_date;                   // ISO, may be empty
  std::optional<double> sm_count;            // SMs or CUs
  std::optional<double> boost_hz;
  Bytes memory_nominal{};                // the brochure's figure
  std::optional<Bytes> memory_reported;  // what the driver reports, when known
  BytesPerSecond memory_bandwidth{};
  std::string memory_type;  // "gddr6x", "hbm3", may be empty
  // Of its architecture, where known ("device-memory" sheets): what the driver keeps of what it
  // reports, and a program's context before it allocates anything.
  Bytes memory_reserved{};
  std::optional<Bytes> context;
  // What a context takes before that version of CUDA, the oldest first.
  struct OlderContext {
    CudaVersion before;
    Bytes context{};
  };
  std::vector<OlderContext> older_contexts;
  std::optional<Bytes> context_with(std::optional<CudaVersion> cuda) const;
  std::optional<Bytes> l2;
  bool unified_memory = false;  // shared with the host (Apple, APUs)
  std::array<std::optional<FlopsPerSecond>, kMathModes> peak{};
  bool sparsity_2to4 = false;
  std::optional<Watts> board_power;
  PeerLink peer_link;
  std::optional<BytesPerSecond> pcie_one_way;
  std::optional<double> mig_max_instances;
  int devices_per_board = 1;  // MI250: software sees two devices, each with half of everything
  bool announced = false;     // not on sale when the facts were gathered
  std::optional<Dollars> launch_price;
  const FactSheet* sheet = nullptr;  // sources and dates of all of the above

  std::optional<FlopsPerSecond> peak_of(MathMode m) const {
    return peak[static_cast<std::size_t>(m)];
  }
};

}  // namespace trigon
