#pragma once
// Text encoders of image networks: CLIP's, T5's, BERT's and ChatGLM's.

#include <string_view>

#include "network/spec.hpp"

namespace trigon {

// Builds the encoder whose facts the sheet keeps under `name` ("clip_l.width", ...), for `tokens`
// tokens (0: the fact `name`.tokens). Its `kind` is "clip" (causal, normalised before each branch,
// learned positions), "bert" (the same, bidirectional, normalised after) "t5" (relative position
// biases, gated feed-forward, no biases) or "glm" (a causal decoder read as an encoder: rotary
// positions, grouped keys, gated feed-forward).
Graph text_encoder_graph(const NetworkSpec& spec, std::string_view name, std::int64_t tokens = 0);

}  // namespace trigon
