#pragma once
// Attention operators of ai.onnx and com.microsoft share their core.

#include "onnx/op.hpp"

namespace trigon::onnx {

struct AttentionSizes {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, head_dim = 1, value_dim = 1;
  std::int64_t queries = 1, keys = 1;  // past ones counted
  bool causal = false, biased = false;
};
// Output 0 as the operator's inputs `data` say; refuses sizes that are not positive.
void emit_attention(Op& op, const AttentionSizes& s, const Indices& data,
                    const Indices& parameters = {});

}  // namespace trigon::onnx
