#pragma once
// A row that times operators or a collective by themselves: what ran and how its figure is read.

#include <vector>

#include "base/result.hpp"
#include "cost/device_model.hpp"

namespace trigon {

struct TimedCase {
  std::vector<Operator> operators;  // one after another; empty: a collective
  Collective collective = Collective::all_reduce;
  CollectiveKernels kernels = CollectiveKernels::library;
  bool host_launched = false;  // each call of its own, not replayed from a graph
  double payload = 0;          // bytes of the full buffer
  int ranks = 1;
  // The figure: seconds, `work` per second (operations or bytes), or the bytes that each rank puts
  // on the wire per second ("bus bandwidth" of nccl-tests).
  enum class Figure : std::uint8_t { seconds, rate, bus_bandwidth } figure = Figure::seconds;
  double work = 0;
  const Calibration* calibration = nullptr;
};

// The figure with its range.
Result<Estimate<double>> predict_timed(const TimedCase& c, const Cluster& hardware);

}  // namespace trigon
