#pragma once
// What one layer, or what stands around the layers, puts on one rank of a tensor-parallel group.

#include "job/job.hpp"
#include "model/kv_cache.hpp"
#include "model/model.hpp"

namespace trigon {

// Bytes of weights as the checkpoint stores them, with what is needed to restate them in another
// format: the parameters of the matrices a quantiser converts, and their bytes.
struct WeightShare {
  double kept_bytes = 0;  // norms, biases, routers: never converted
  double kept_parameters = 0;
  double matrix_bytes = 0;  // matrices stored in the model's main format
  double matrix_parameters = 0;
  // What optimizers tell apart among all parameters: embedding tables, heads, vectors; and the sum
  // of rows + columns over everything that is not a vector, which factored moments keep.
  double tables = 0, heads = 0, vectors = 0, edges = 0;
  // Bytes when the matrices are stored with `bits` a parameter; 0: as they are.
  double bytes(double bits) const {
    return kept_bytes + (bits > 0 ? matrix_parameters * bits / 8 : matrix_bytes);
  }
  double parameters() const { return kept_parameters + matrix_parameters; }
  WeightShare& operator+=(const WeightShare& w) {
    kept_bytes += w.kept_bytes;
    kept_parameters += w.kept_parameters;
    matrix_bytes += w.matrix_bytes;
    matrix_parameters += w.matrix_parameters;
    tables += w.tables;
    heads += w.heads;
    vectors += w.vectors;
    edges += w.edges;
    return *this;
  }
  WeightShare times(double k) const {
    return {kept_bytes * k, kept_parameters * k, matrix_bytes * k, matrix_parameters * k,
            tables * k,     heads * k,           vectors * k,      edges * k};
  }
};

struct LayerShare {
  WeightShare dense;
  WeightShare experts;  // all of them, whole: divided when the plan is known
  double expert_count = 0;
  double largest_matrix = 0;  // parameters of the largest dense or single expert matrix
  // Over the matrices that carry adapters, on this rank: their number, the sum of their outputs and
  // of inputs + outputs. Rank x the last is what low-rank adapters hold.
  double adapted = 0, adapter_out = 0, adapter_in_out = 0, adapter_area = 0;  // in x out
  // The same over the matrices of all experts, whole.
  double expert_adapted = 0, expert_out = 0, expert_in_out = 0;
  void adapt(double in, double out) {
    adapted += 1;
    adapter_out += out;
    adapter_in_out += in + out;
    adapter_area += in * out;
  }
};

// Bytes of one cache element block: elements of one head in whole blocks of the format.
struct CacheShare {
  double key_head = 0, value_head = 0;  // elements of one head
  double heads = 0;                     // on the rank; 1 for latent caches
  double side_bytes = 0;                // indexer keys an entry, whatever the format
  double ratio = 1;                     // tokens that an entry stands for
  double sequence_elements = 0;         // a sequence keeps whole beside compressed entries
  double state_bytes = 0;               // of recurrent mixers, a sequence
  double reach = 0;                     // 0: everything is kept
  // Cross-attention, kept for each token of the source.
  double source_key_head = 0, source_value_head = 0, source_heads = 0;
  double bytes_per_token(Format keys, Format values) const;
  double source_bytes_per_token(Format keys, Format values) const;
  double bytes_per_sequence(double bits) const {
    return state_bytes + sequence_elements * bits / 8;
  }
};

struct ShareRules {
  Format main_format = Format::bf16;  // the model's
  bool adapters = false;
  AdapterTargets targets = kAllLinears;
  bool latent_absorbed = true;  // MLA caches the latent vector, not the expanded heads
  bool latent_values = false;   // ... and a second copy of it for the values
};

WeightShare share_of(const Linear& l, int tensor, const ShareRules& rules);
LayerShare share_of(const Layer& l, int tensor, const ShareRules& rules);
CacheShare cache_share(const Layer& l, const CacheRun& cache, int tensor, const ShareRules& rules);
// Rows of an embedding or head on a rank, padded first.
double vocabulary_rows(std::int64_t rows, int tensor, std::int64_t padding);
WeightShare embedding_share(const Linear& l, int tensor, std::int64_t padding);
WeightShare head_share(const Linear& l, int tensor, std::int64_t padding);
WeightShare share_of(const Norm& n);

// Whether two layers weigh, cache and compute the same.
bool same_layer(const Layer& a, const Layer& b);

}  // namespace trigon
