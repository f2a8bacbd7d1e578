#pragma once
// A row that times operators or a collective by themselves: what ran and how its figure is read.

#include <optional>
#include <vector>

#include "base/result.hpp"
#include "cost/device_model.hpp"

namespace trigon {

struct TimedCase {
  std::vector<Operator> operators;  // one after another; empty: a collective
  Collective collective = Collective::all_reduce;
  CollectiveKernels kernels = CollectiveKernels::library;
  bool host_launched = false;              // each call of its own, not replayed from a graph
  double payload = 0;                      // bytes of the full buffer
  std::optional<ExpertExchange> exchange;  // kernels for experts instead of a collective
  int ranks = 1;
  // The figure: seconds, `work` per second (operations or bytes), or the bytes that each rank puts
  // on the wire per second ("bus bandwidth" of nccl-tests).
  enum class Figure : std::uint8_t { seconds, rate, bus_bandwidth } figure = Figure::seconds;
  double work = 0;
  // A product of operands that are in this class already: the share of the peak that 16 bit
  // reaches, without the scaling that an engine's linear layer does first.
  std::optional<MathClass> at_peak_of;
  bool best_shape = false;  // the most over shapes, of which the operators are one each
  const Calibration* calibration = nullptr;
};

// A call that the host launches: engines' kernels wait for the launch and copy the payload into a
// buffer that the peers know first (read and written); the library's synchronised calls come after
// it.
double host_launched(const DeviceModel& d, double seconds, double payload,
                     CollectiveKernels kernels);

// The figure with its range.
Result<Estimate<double>> predict_timed(const TimedCase& c, const Cluster& hardware);

}  // namespace trigon
