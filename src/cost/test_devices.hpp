#pragma once
// A device with round numbers, for tests whose expected values are worked out by hand.

#include "cost/device_model.hpp"

namespace trigon::test {

// 100 TFLOP/s in 16 bit, 200 in FP8, 1 TB/s, 100 SMs; ceilings of one, no latencies, no slopes.
inline Accelerator round_card() {
  Accelerator a;
  a.id = "round";
  a.name = "Round 100";
  a.vendor = "nvidia";
  a.architecture = a.family = "round";
  a.sm_count = 100;
  a.memory_nominal = gigabytes(100);
  a.memory_bandwidth = gigabytes_per_second(1000);
  a.board_power = watts(400);
  auto peak = [&](MathMode m, double t) {
    a.peak[static_cast<std::size_t>(m)] = teraflops_per_second(t);
  };
  peak(MathMode::fp32_vector, 10);
  peak(MathMode::tf32_matrix, 50);
  peak(MathMode::fp16_matrix_fp32_accumulate, 100);
  peak(MathMode::bf16_matrix, 100);
  peak(MathMode::fp8_matrix, 200);
  peak(MathMode::int8_matrix, 200);
  return a;
}

inline DeviceModel round_device(const Accelerator& a) {
  DeviceModel d;
  fill_units(d, a);
  for (MatrixCoefficients& m : d.operators.matrix) {
    m.ceiling = 1;
    m.sharpness = 1000;  // as good as a corner
  }
  d.operators.stream.ceiling = 1;
  d.operators.attention.prefill_ceiling = d.operators.attention.decode_ceiling = 1;
  d.per_node = 8;
  d.intra.one_way = 100e9;
  d.intra.topology = PeerTopology::fabric_switch;
  d.intra.c.ceiling = 1;
  return d;
}

}  // namespace trigon::test
