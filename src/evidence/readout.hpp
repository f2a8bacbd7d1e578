#pragma once
// Which number of an answer a measurement is held against.

#include <optional>
#include <vector>

#include "decide/answers.hpp"

namespace trigon {

struct Readout {
  enum class Kind : std::uint8_t {
    metric,          // scale * the metric
    reciprocal,      // scale / the metric
    static_seconds,  // a fixed batch from start to end: its prompts, then output - 1 steps
    static_rate,     // scale * what a fixed batch puts out per second of that
    memory_terms,    // scale * the sum of the terms of the fullest rank
    fits             // 1 or 0
  };
  Kind kind = Kind::metric;
  Metric metric = Metric::count_;
  double scale = 1;
  std::vector<MemoryTerm> terms;
  bool over_ranks = false;   // memory_terms: all cards together
  bool last_stage = false;   // memory_terms: of the last pipeline stage, not the fullest rank
  bool first_stage = false;  // memory_terms: of a rank of the first pipeline stage
  // memory_terms: what ggml keeps in host memory counts too, or alone; or the card that
  // has the largest buffer of a pass.
  enum class Host : std::uint8_t {
    none,
    weights,
    kv_cache,
    buffers_alone,
    largest_forward
  } host = Host::none;
  double plus = 0;  // memory_terms: bytes that lie elsewhere and were counted too
  double batch = 1, input = 0, output = 0;  // static_*: sequences and tokens of each
};

// The number with its range; absent when the answer does not have it.
std::optional<Estimate<double>> read_out(const Readout& r, const EstimateAnswer& answer);

}  // namespace trigon
