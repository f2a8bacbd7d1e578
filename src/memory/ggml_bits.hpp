#pragma once
// Bytes of weights by what a quantiser treats alike.

#include "memory/memory_model.hpp"

namespace trigon {

// Bits of a weight; 0: as the checkpoint stores it.
struct MemoryModel::GgmlBits {
  bool as_stored = false;  // a GGUF file, or one of its types in the checkpoint's own formats
  double layers = 0, experts = 0, head = 0, embedding = 0;

  double matrix_bytes(const WeightShare& w, double bits) const {
    return as_stored || bits <= 0 ? w.matrix_bytes : w.matrix_parameters * bits / 8;
  }
  // A quantiser leaves vectors and routers in 32 bit (llama-quant.cpp).
  double bytes(const WeightShare& w, double bits) const {
    return (as_stored ? w.kept_bytes : 4 * w.kept_parameters) + matrix_bytes(w, bits);
  }
  double end_bytes(const WeightShare& w, double bits) const {
    if (as_stored || bits <= 0) return w.kept_bytes + w.matrix_bytes;
    return w.parameters() * bits / 8;
  }
};

}  // namespace trigon
