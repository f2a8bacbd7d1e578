#pragma once
// Internal to the lower room: writes the operators of one layer's parts on one rank.

#include <cmath>

#include "lower/lower.hpp"

namespace trigon {

inline double element_bytes(Format f) { return bits_per_element(f) / 8; }
constexpr double kNoWindow = 1e18;
// Mean keys of a causal query of the pass within a window.
double keys_within(const Pass& pass, double window);

struct LayerWriter {
  const Stack& stack;
  const Pass& pass;
  OperatorList& out;

  double tokens() const { return pass.sequences * pass.new_tokens / pass.context; }
  double act() const { return element_bytes(pass.activations); }
  double tensor() const { return pass.tensor; }

  void linear(const char* name, const Linear& l, double column_ranks, double row_ranks,
              double rows);
  // A product that stays in the format of the activations where others take fewer bits.
  void wide_linear(const char* name, const Linear& l, double column_ranks, double row_ranks,
                   double rows);
  Format product_format(const Linear& l) const;
  void round_input(Operator& product);
  void widen(Operator& product, double rows);
  void convert(Operator& product);
  void elementwise(const char* name, double values, double reads, double writes);
  void mirrored();
  void reduce_hidden(const char* name);
  void norm(const Norm& n, const char* name);
  void mlp(const Mlp& m, const char* reduce);
  void expert_linear(const char* name, const Linear& l, double rows, double groups, double split,
                     bool column);
  void experts(const MixtureOfExperts& m);
  void dispatch(const char* name, double pairs, double width);
  void exchanged_experts(const MixtureOfExperts& m);
  void gathered_experts(const MixtureOfExperts& m, std::int32_t ranks);
  void send_tokens(OperatorKind kind, const char* name, const MixtureOfExperts& m, Format format);

  void attention(const Attention& a);
  void copy_cache(double heads, double kv_heads, double width);
  void score_positions(const Attention& a, double heads, double qk, double keys);
  void cross(const Attention& a);
  void scores(const char* name, double heads, double kv_heads, double qk, double v, double keys,
              double group, double cache_width);
  void latent(const LatentAttention& a);
  void index(const SparseIndexer& x, double keys);
  double chosen_keys(const std::optional<SparseIndexer>& x, double keys);
  void compressed(const CompressedAttention& a);
  void pool(const char* name, const KeyCompressor& c, double rows);

  void recurrence(const RecurrentMixer& m);
  void scan(const RecurrentMixer& m);
  void streams(const StreamMixer& m);
};

}  // namespace trigon
