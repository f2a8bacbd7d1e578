#pragma once
// The buffers ggml reserves for the intermediate tensors of one micro-batch: the graph of the
// layers as llama.cpp and ik_llama.cpp build it, replayed through their allocator.

#include <cstdint>
#include <vector>

#include "engine/policy.hpp"
#include "model/model.hpp"

namespace trigon {

struct ComputeBuffer {
  std::int64_t micro_batch = 512;  // n_ubatch
  std::int64_t keys = 0;           // n_ctx: the graph is reserved for a full cache
  std::int64_t window_keys = 0;    // of caches of windowed layers, where they are apart
  double key_bytes = 2;            // of one cached element
  bool flash_attention = false;
  bool latent_cached = false;  // MLA
  int latent_mode = 1;         // ik_llama.cpp's -mla; 2 and 3 expand it under flash attention
  bool latent_expanded = false;
  bool heads_together = true;
  double attention_chunk = 0;  // bytes of scores or expanded latents at once; 0: all
  bool masks_converted = true, fused_norms = false, fused_gates = false, fused_experts = false;
  ExpertCopies expert_copies = ExpertCopies::never;
  int input_copies = 1;  // ggml's scheduler keeps four of each input to overlap devices
};

struct BufferLayer {
  const Layer* layer = nullptr;
  std::int64_t hidden = 0;
  bool windowed = false;  // reads the cache of `window_keys`
  bool experts_on_host = false;
  double expert_bits = 16;  // of a weight that is copied to the card
};

// A run of layers on one device.
struct BufferRun {
  std::vector<BufferLayer>
      layers;           // enough of them: the third of a kind needs what the second does
  bool on_cpu = false;  // no card at all
  bool first = true;    // starts from the embedding, which the host holds
  bool head = true;     // ends in logits of every token
  // Weights and caches lie on the host and are copied to the card for each product; of so many bits
  // a weight. 0: they lie where the run does.
  double copied_bits = 0, copied_head_bits = 0;
};

// Bytes of the run's device and of the CPU beside it (the same where the run is on the CPU).
struct DeviceBuffers {
  double device = 0, host = 0;
};
DeviceBuffers compute_buffers(const Stack& stack, const BufferRun& run, const ComputeBuffer& b);

}  // namespace trigon
