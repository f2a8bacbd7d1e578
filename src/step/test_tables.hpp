#pragma once
// Tables with times written by hand, for tests whose expected values are worked out beside them.

#include <string_view>

#include "cost/test_devices.hpp"
#include "memory/test_models.hpp"
#include "step/tables.hpp"

namespace trigon::test {

inline EnginePolicy plain_engine() {
  EnginePolicy e;
  e.id = "plain";
  e.serves = e.trains = true;
  e.max_sequences = 256;
  return e;
}

// The plain engine's coefficients are neutral; every device takes the same ceilings.
inline FactStore neutral_calibration() {
  FactStore store;
  auto add = [&](std::string_view text) {
    auto sheet = parse_fact_sheet(text, "test.toml");
    if (sheet) store.add(std::move(*sheet));
  };
  add(R"(
kind = "calibration"
id = "operators/any"
source = "test"
date = "2026-01"
half = { ceiling = 0.8, error = 0.1, k_half = 100, wave_exponent = 0.1 }
stream = { ceiling = 0.8, error = 0.1, half_bytes = 10000 }
attention = { prefill_ceiling = 0.6, decode_ceiling = 0.8, error = 0.2, keys_half = 400 }
launch = { seconds = 3e-6, error = 0.2 }
grouped = { factor = 0.6, error = 0.3 }
)");
  for (const char* reach : {"inside-node", "between-nodes"})
    add(std::string(R"(
kind = "calibration"
source = "test"
date = "2026-01"
ceiling = 0.8
half_bytes = 1e6
latency_seconds = 1e-6
start_seconds = 5e-6
error = 0.2
id = "link/any-)") +
        reach + "\"\n");
  add(R"(
kind = "calibration"
id = "engines"
source = "test"
date = "2026-01"
[[effect]]
kind = "serve"
step_overhead_seconds = 1e-4
[[effect]]
kind = "train"
overlap = 0.7
step_overhead_seconds = 1e-3
[[effect]]
kind = "serve-graph"
[[effect]]
kind = "train-graph"
overlap = 0.7
)");
  return store;
}

inline Cluster round_cluster(const Accelerator& card, int per_node, int nodes = 1) {
  Cluster c;
  c.accelerator = &card;
  c.per_node = per_node;
  c.nodes = nodes;
  c.intra = {"round", PeerTopology::fabric_switch, gigabytes_per_second(100)};
  if (nodes > 1) c.inter = Link{"net", PeerTopology::fabric_switch, gigabytes_per_second(10)};
  return c;
}

}  // namespace trigon::test
