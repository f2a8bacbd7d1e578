#pragma once
// The buffer ggml reserves on each device for the intermediate tensors of one micro-batch.

#include "model/model.hpp"

namespace trigon {

struct ComputeBuffer {
  double micro_batch = 512;  // n_ubatch
  double keys = 0;           // n_ctx: the graph is reserved for a full cache
  bool flash_attention = false;
  double masks = 1;              // one, or two where windowed and full layers alternate
  bool latent_expanded = false;  // MLA under flash attention: keys and values of all heads
  double attention_chunk = 0;    // bytes of that expansion held in 32 bit at once; 0: all
  double input_copies = 1;       // ggml's scheduler keeps four of each input to overlap devices
};

// All intermediates are 32-bit. What one layer needs at its widest point beside the graph's
// inputs, bytes.
double compute_buffer_layer(const Layer& layer, std::int64_t hidden, const ComputeBuffer& b);
// The head, reserved for the logits of every token of the micro-batch.
double compute_buffer_head(std::int64_t hidden, std::int64_t vocabulary, const ComputeBuffer& b);
// The whole buffer. Inputs (embeddings and masks) die with their last use unless they are kept in
// several copies.
double compute_buffer_bytes(double widest_layer, double head, std::int64_t hidden,
                            const ComputeBuffer& b);

}  // namespace trigon
