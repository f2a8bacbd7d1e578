#pragma once
// The primitive operators of one rank for one pass, whatever model they came from. Everything
// after `lower` sees nothing else.

#include <cstdint>
#include <vector>

#include "model/format.hpp"

namespace trigon {

enum class OperatorKind : std::uint8_t {
  gemm,          // m x k times k x n
  grouped_gemm,  // experts: `groups` matrices are read, m rows in all
  convolution,   // implicit m x k times k x n, `groups` of them side by side
  attention,     // scores and values against a cache or the prompt itself
  scan,          // a recurrence over tokens that reads and writes a state for each sequence
  elementwise,   // norms, activations, residuals: bytes only
  gather,        // embedding look-up: bytes only
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  send,
  expert_dispatch,  // tokens to the ranks of their experts, by kernels made for that
  expert_combine    // and what the experts give back
};

// Dimensions are doubles because expected values (rows per expert, mean context) are not whole.
struct Operator {
  OperatorKind kind = OperatorKind::gemm;
  const char* name = "";  // "attention.q", as in docs and derivations
  double m = 0, n = 0, k = 0;
  double groups = 1;  // gemm: products of their own; convolution: channel groups, n and k of one
  double repeat = 1;  // the same operator so many times, one after another
  Format weights = Format::bf16;      // what the stored matrix is in
  Format activations = Format::bf16;  // what it is multiplied with
  double flops = 0;
  double weight_bytes = 0;  // read from memory once per pass
  double data_bytes = 0;    // activations and cache: read and written
  // Attention.
  double sequences = 0, query_tokens = 0, key_tokens = 0;
  double group_size = 1;     // query heads that share a key head
  double window = 0;         // keys that a query sees of a longer context; 0: all of it
  bool scores_kept = false;  // scores lie in memory until the backward pass
  bool matrix_form = false;  // scan: products of chunks on the matrix units, else token by token
  // Elementwise: bytes read once more, from the last-level cache where the rows that are worked on
  // at one time fit; a row has so many bytes. Products: a matrix of `row_bytes` that is read once
  // more for each further row.
  double again_bytes = 0, row_bytes = 0;
  // Elementwise: what its backward pass reads and writes; negative: twice `data_bytes`.
  double backward_bytes = -1;
  // Collectives: the full buffer in bytes (nccl-tests' convention) and the ranks of the group.
  double payload_bytes = 0;
  std::int32_t ranks = 1;
  std::int32_t stride = 1;  // between neighbours of the group, in ranks
  // Of expert_dispatch and expert_combine: m tokens of a rank, k values each, n of `groups` experts
  // a token, `weights` on the way. Straight to each expert's rank, or once for each rank.
  bool low_latency = false;
  bool minimal_filtering = false;  // convolution: 3 x 3 in steps of one, as Winograd's products
  int axes = 2;                    // convolution: of positions; 1 over time, 3 in a volume
  bool in_library = false;  // launched by a library within another call: no work of the host's
  bool widened = false;     // stored narrow, multiplied at the width of the activations
  double routing_skew = 0;  // grouped: exponent of the power law of rows over groups; 0: even
  // As tables of operators time it: again and again with the same operands, so that what the
  // last-level cache holds is read from there, and launched by the host where its kernel needs
  // that. A model's own operators never are.
  bool timed_alone = false;
  bool trainable = true;       // weights that get a gradient when training
  bool input_gradient = true;  // its input gets one too: not that of the first layer

  bool operator==(const Operator&) const = default;
};

using OperatorList = std::vector<Operator>;

}  // namespace trigon
