// Matrices that ggml splits over cards by rows (llama.cpp -sm row).

#include <algorithm>
#include <cstring>

#include "memory/ggml_bits.hpp"
#include "memory/stage_layers.hpp"

namespace trigon {
namespace {

double d(std::int64_t v) { return static_cast<double>(v); }

}  // namespace

// Those of two dimensions that one product reads; stacks of matrices (experts, the halves of MLA's
// kv_b) stay whole (ggml_backend_cuda_device_supports_op). So do routers here, which are small.
std::vector<MemoryModel::SplitMatrix> MemoryModel::split_matrices(std::size_t kind) const {
  std::vector<SplitMatrix> out;
  for (const NamedLinear& l : linears_of(*kinds_[kind])) {
    if (l.linear->count > 1 || std::strcmp(l.role, "router") == 0) continue;
    if (engine_.mla_absorbed && std::strcmp(l.role, "kv_up") == 0) continue;
    const WeightShare share = share_of(*l.linear, 1, rules_);
    if (share.matrix_parameters > 0)
      out.push_back({l.linear->out, l.linear->in, share, l.linear->format});
  }
  return out;
}

// Of `bytes` of a matrix; `home`: the card whose layers it belongs to. A matrix of which that card
// would have no rows lies there whole (supports_op again).
double MemoryModel::rows_on_card(const Plan& plan, const SplitMatrix& m, double bytes, int home,
                                 int card) const {
  const Format format = info(main_format_).gguf ? m.format : plan.weights;
  const std::int64_t block = row_block(format, capability_, engine_.rounds_by_type);
  const CardParts parts(plan.card_shares, plan.pipeline);
  if (parts.rows(m.rows, block, home).count() <= 0) return home == card ? bytes : 0;
  const std::int64_t rows = parts.rows(m.rows, block, card).count();
  if (rows <= 0) return 0;
  // The last row of a part is padded to 512 elements (MATRIX_ROW_PADDING).
  const std::int64_t odd = m.columns % 512;
  const double row = bytes / d(m.rows);
  return d(rows) * row + (odd > 0 ? row * d(512 - odd) / d(m.columns) : 0);
}

// Bytes of the layers of a kind outside their experts.
double MemoryModel::row_weights(const Plan& plan, int stage, std::size_t kind) const {
  const GgmlBits bits = ggml_bits(plan);
  KindShare scratch;
  double whole = bits.bytes(kind_at(kind, 1, scratch).weights.dense, bits.layers);
  for (const SplitMatrix& m : split_matrices_[kind])
    whole -= bits.matrix_bytes(m.share, bits.layers);
  double sum = 0;
  for (int home = 0; home < plan.pipeline; ++home) {
    const StageLayers layers = stage_layers(plan, home);
    const int n = layers.between(kind, layers.on_card());
    if (n == 0) continue;
    double one = home == stage ? whole : 0;
    for (const SplitMatrix& m : split_matrices_[kind])
      one += rows_on_card(plan, m, bits.matrix_bytes(m.share, bits.layers), home, stage);
    sum += (kind_shared_[kind] ? std::min(n, 1) : n) * one;
  }
  return sum;
}

double MemoryModel::head_rows(const Plan& plan, int stage, double bytes) const {
  int home = 0;
  while (home + 1 < plan.pipeline && !stage_layers(plan, home).head_here()) ++home;
  SplitMatrix m;
  m.rows = stack_->vocabulary;
  m.columns = stack_->hidden;
  m.format = stack_->head ? stack_->head->format : main_format_;
  return m.rows > 0 ? rows_on_card(plan, m, bytes, home, stage) : 0;
}

// What a card that helps with another's layer takes from its pool for one product: the input whole
// and the results of its rows, 32 bit (ggml_cuda_op_mul_mat). Of the head only wanted tokens count,
// which are few.
double MemoryModel::row_scratch(const Plan& plan, int stage, double tokens) const {
  std::int64_t most = 0;
  const CardParts parts(plan.card_shares, plan.pipeline);
  for (int home = 0; home < plan.pipeline; ++home) {
    const StageLayers layers = stage_layers(plan, home);
    for (std::size_t k = 0; home != stage && k < kinds_.size(); ++k) {
      if (layers.between(k, layers.on_card()) == 0) continue;
      for (const SplitMatrix& m : split_matrices_[k]) {
        const Format format = info(main_format_).gguf ? m.format : plan.weights;
        const std::int64_t block = row_block(format, capability_, engine_.rounds_by_type);
        const std::int64_t rows = parts.rows(m.rows, block, stage).count();
        if (rows > 0 && parts.rows(m.rows, block, home).count() > 0)
          most = std::max(most, m.columns + rows);
      }
    }
  }
  return 4 * tokens * d(most);
}

}  // namespace trigon
