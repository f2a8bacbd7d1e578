#pragma once
// Model x pass x degrees -> operators of one rank. Pure geometry: no times, no hardware.

#include <optional>

#include "engine/policy.hpp"
#include "lower/operators.hpp"
#include "model/model.hpp"

namespace trigon {

// One forward pass over one rank's share of a model.
struct Pass {
  double sequences = 1;         // in this pass
  double new_tokens = 1;        // per sequence: the prompt (prefill), 1 (decode), s (training)
  double cached_tokens = 0;     // per sequence, before this pass (mean over the sequences)
  double logits_rows = 1;       // per sequence
  double source_tokens = 0;     // per sequence: what cross-attention reads
  bool project_source = false;  // this pass makes the keys and values of the source
  Format kv = Format::bf16;     // what the cache is stored in
  Format activations = Format::bf16;
  std::int32_t tensor = 1;           // tensor-parallel ranks
  std::int32_t expert = 1;           // expert-parallel ranks
  std::int32_t context = 1;          // context-parallel ranks (training)
  std::int32_t expert_tensor = 0;    // training: ranks that divide one expert; 0: the tensor group
  bool heads_exchanged = false;      // context ranks divide heads while they attend (Ulysses)
  bool expert_inside_tensor = true;  // serving: EP divides the tensor group's experts
  // The tensor group divides sequences and routed experts, and nothing else.
  bool attention_data = false;
  // Tokens are divided over the tensor group and travel to the ranks of their experts.
  bool expert_kernels = false, low_latency_experts = false;
  bool sequence_parallel = false;  // all-gather + reduce-scatter instead of all-reduce
  bool fused_elementwise = true;   // compiled or fused kernels: each norm and activation
                                   // reads and writes once; eager frameworks do so per operation
  bool absorbed_latent = true;     // MLA decode multiplies by the absorbed matrices
  double score_bytes = 0;          // of a score that is materialised; 0: scores stay on the chip
  bool autocast = false;        // weights in 32 bit are converted, once a pass, for products in 16
  bool cache_copied = false;    // a cache that grows is copied whole (Hugging Face)
  bool heads_expanded = false;  // keys and values are repeated for each query head first
  double gathered_rows = 0;     // up to so many tokens experts are not sorted for
  bool expert_loop = false;     // experts are multiplied one after the other
  bool row_products = false;    // each row of activations reads a quantised matrix anew
  double widened_rows = 0;      // quantised matrices that meet so many rows are widened first
  // Training: bytes that the loss moves for each logit in its forward pass (0: there is no loss),
  // with the vocabulary divided over the tensor group.
  double loss_bytes = 0;
  std::optional<Format> replace_weights;  // the plan widens or narrows 16-bit weights to this
  // Training keeps matrices in 16 or 32 bit. Products in fewer bits round both operands first;
  // attention, norms and what ranks exchange stay in the format of the activations, and so do
  // the router and the head.
  bool training = false;
  bool trains_matrices = false;  // none stays as narrow as its checkpoint holds it
};

// Appends the operators of one layer. Layers of an encoder are lowered with new_tokens of whole
// sequences and nothing cached.
void lower_layer(const Stack& stack, const Layer& layer, const Pass& pass, OperatorList& out);
// Appends what comes before the first layer (embedding, front ends) or after the last (norm,
// projections, head).
void lower_embedding(const Stack& stack, const Pass& pass, OperatorList& out);
void lower_head(const Stack& stack, const Pass& pass, OperatorList& out);

// One pass of `items` items over a graph on one rank.
struct ItemPass {
  double items = 1;
  Format activations = Format::f16;  // of what flows between operators
  Format weights = Format::f16;      // as products read them
  bool tf32_convolutions = false;    // 32-bit convolutions are multiplied in TF32
  Fusion fusion = Fusion::epilogue;  // which kernels functions of single elements join
  bool autocast = false;             // weights in 32 bit, products in 16
  bool channels_first = false;       // images lie as [channels, height, width]
  bool matrix_units = true;          // 16-bit products run on them
  bool flash_attention = true;       // scores stay on the chip where the network allows it
  bool training = false;             // batch norms take statistics of the batch
};
// Appends the operators of a graph, equal ones once with their `repeat`.
void lower_graph(const Graph& graph, const ItemPass& pass, OperatorList& out);

// Expected number of distinct experts that `tokens` tokens touch when each picks `active` of
// `experts` uniformly: E (1 - (1 - k/E)^tokens).
double experts_hit(double experts, double active, double tokens);

// Mean keys a query of this pass reads, with causality, windows and chunks.
double mean_keys(const Attention& a, const Pass& pass);

}  // namespace trigon
