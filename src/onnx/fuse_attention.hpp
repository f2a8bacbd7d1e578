#pragma once
// Attention that a file writes out as product, softmax, product becomes one node, so that the
// framework decides whether the scores are written.

#include "model/graph.hpp"

namespace trigon::onnx {

void fuse_attention(Graph& g);

}  // namespace trigon::onnx
