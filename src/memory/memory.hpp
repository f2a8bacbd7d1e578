#pragma once
// What lies where, per rank.

#include <array>
#include <cstdint>
#include <vector>

#include "base/estimate.hpp"
#include "base/quantity.hpp"
#include "base/record.hpp"
#include "engine/policy.hpp"
#include "hardware/cluster.hpp"
#include "job/job.hpp"
#include "memory/messages.hpp"
#include "model/model.hpp"
#include "plan/plan.hpp"

namespace trigon {

enum class MemoryTerm : std::uint8_t {
  weights,
  kv_cache,     // for the asked sequences and context (or the pool an engine reserves)
  activations,  // peak of one forward (inference) or saved for backward (training)
  logits,
  media,  // images and films that a server runs at start, beyond its activations
  gradients,
  master_weights,
  optimizer,
  adapters,    // LoRA weights, their gradients and optimizer state
  gathered,    // ZeRO-3 working set of gathered layers, dequantisation buffers
  workspaces,  // of matrix libraries, inside the framework's allocator
  context,     // device context
  libraries,   // kernels and workspaces that libraries load as they first run
  collectives,
  graphs,
  fragmentation,
  count_
};
constexpr std::size_t kMemoryTerms = static_cast<std::size_t>(MemoryTerm::count_);

// What lies in the memory of one machine beside its cards: ggml's share of a model, or what
// training offloads there.
struct HostMemory {
  double weights = 0;   // embedding, layers and experts that lie on no card
  double kv_cache = 0;  // of those layers
  double buffers = 0;   // intermediates of what the CPU computes
  double twice = 0;     // of `weights`, what a card holds as well (a tied embedding)
  double repacked = 0;  // copies of weights in the layout of the CPU's kernels
  // Of training, with all ranks of a node as full as this one.
  double states = 0;       // offloaded weights, their gradients, masters and moments
  double activations = 0;  // offloaded ones of all micro-batches in flight
  double total() const { return weights + kv_cache + buffers + repacked + states + activations; }
};

// Bytes on one rank, by term. Trivially copyable: this is what search looks at.
struct RankMemory {
  std::array<double, kMemoryTerms> bytes{};
  HostMemory host;           // of a whole machine; no part of `total`
  double cached_tokens = 0;  // that a pool's caches hold: whole pages of every sequence
  double total() const {
    double t = 0;
    for (double b : bytes) t += b;
    return t;
  }
  double& operator[](MemoryTerm t) { return bytes[static_cast<std::size_t>(t)]; }
  double operator[](MemoryTerm t) const { return bytes[static_cast<std::size_t>(t)]; }
};

}  // namespace trigon
