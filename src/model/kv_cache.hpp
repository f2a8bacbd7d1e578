#pragma once
// What a stack keeps of the tokens it has seen, layer run by layer run.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_count.hpp"
#include "model/model.hpp"

namespace trigon {

enum class CacheKind : std::uint8_t {
  full,        // keys and values of every token
  windowed,    // of the last `reach` tokens
  chunked,     // of the current chunk of `reach` tokens
  latent,      // MLA: one compressed vector and one rotary key a token, whole on every rank
  compressed,  // one entry for `ratio` tokens and a window of whole ones, on every rank
  fixed,       // a recurrent state alone: the same for any number of tokens
  none         // no attention, or the cache of an earlier layer is reused
};

struct CacheRun {
  CacheKind kind = CacheKind::none;
  std::int64_t layers = 0;             // after each other, as the runs of the stack
  std::int64_t key_elements = 0;       // a token and layer, over all heads; latent: everything
  std::int64_t value_elements = 0;     // 0 where keys serve as values, and for latent
  std::int64_t index_elements = 0;     // side cache of a sparse indexer, whole on every rank
  bool index_eight_bit = true;         // its keys are FP8 with scales, else 16 bit
  std::int64_t ratio = 1;              // tokens that one entry of keys, values and index stands for
  std::int64_t sequence_elements = 0;  // kept whole beside compressed entries, a sequence and layer
  double state_bytes = 0;     // of recurrent mixers, a sequence and layer; divides by tensor ranks
  std::int64_t kv_heads = 0;  // heads the elements divide by; 0: cannot be divided
  std::optional<std::int64_t> reach;  // window or chunk in tokens
  // Cross-attention: elements of a token of the source, over its own heads.
  std::int64_t source_key_elements = 0, source_value_elements = 0, source_heads = 0;
  std::int64_t elements() const { return key_elements + value_elements; }
  // Tokens kept of a sequence of `tokens`.
  std::int64_t kept(std::int64_t tokens) const {
    return reach && *reach < tokens ? *reach : tokens;
  }
  // Share of the elements on one of `tensor_parallel` ranks: heads are divided while there are
  // any, then repeated; a latent cache is repeated on each.
  std::int64_t elements_on_rank(std::int64_t tensor_parallel) const;
};

struct CacheLayout {
  std::vector<CacheRun> runs;  // one for each run of the stack, in its order
  bool windows = false;        // any run forgets
};

CacheLayout cache_layout(const Stack& s);

// Bytes that cross-attention keeps for each token of the source.
double source_kv_bytes_per_token(const Stack& s, Format f);
// Bytes one more token costs while no window is full, over all layers and heads. Elements of one
// head are rounded up to whole blocks of a block format.
double kv_bytes_per_token(const Stack& s, Format f);
// Bytes one sequence costs whatever its length: recurrent states, windows beside compressed keys.
double fixed_bytes_per_sequence(const Stack& s, Format f);
// Of one layer, whole.
double recurrent_state_bytes(const Layer& l);
// Side cache of an indexer in bytes a cached entry: FP8 keys with one fp32 scale for each 128 of
// them, whatever the format of the main cache (DeepSeek-V3.2's published implementation).
double index_bytes(std::int64_t elements, bool eight_bit);
// Of a sequence of `tokens`, with windows, chunks and fixed states.
double kv_bytes(const Stack& s, Format f, std::int64_t tokens);

}  // namespace trigon
