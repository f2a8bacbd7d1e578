// Copies of weights in the layout of the CPU's kernels (llama.cpp's CPU_REPACK buffer).

#include <algorithm>
#include <string_view>

#include "memory/ggml_bits.hpp"

namespace trigon {
namespace {

// The host of a card has AVX2 unless its maker builds Arm processors. AVX-512 is not assumed.
bool on_arm(std::string_view vendor) {
  return vendor == "apple" || vendor == "ampere" || vendor == "qualcomm" || vendor == "huawei";
}

}  // namespace

void MemoryModel::take_repacked(const Cluster& cluster) {
  const Accelerator* card = cluster.accelerator;
  on_cpu_ = card && card->kind == DeviceKind::cpu;
  // Metal has no host buffers of its own that would be preferred.
  const bool pinned = card && !on_cpu_ && card->vendor != "apple";
  if (pinned && !engine_.repacks_beside_cards) return;
  const bool arm = card && on_arm(card->vendor);
  repacked_rows_ = arm ? 4 : 8;
  for (const std::string& entry : engine_.repacked_formats) {
    const std::size_t at = entry.find('@');
    if (std::string_view(entry).substr(at + 1) != (arm ? "neon" : "avx2")) continue;
    if (const auto format = format_by_name(std::string_view(entry).substr(0, at)))
      repacked_.push_back(*format);
  }
  if (repacked_.empty()) return;
  for (const Layer* kind : kinds_) repack_.push_back(repack_share(linears_of(*kind)));
  if (stack_->head) {
    repack_head_ = repack_share({{"head", &*stack_->head}});
  } else if (stack_->tied && stack_->embedding) {
    // Looking words up needs the embedding as it is, so the copy is there beside it.
    Linear head = *stack_->embedding;
    std::swap(head.in, head.out);
    repack_head_ = repack_share({{"head", &head}});
  }
}

MemoryModel::RepackShare MemoryModel::repack_share(const std::vector<NamedLinear>& linears) const {
  RepackShare out;
  for (const NamedLinear& l : linears) {
    const std::string_view role = l.role;
    if (l.linear->out % repacked_rows_ != 0 || role == "router") continue;
    if (engine_.mla_absorbed && role == "kv_up") continue;  // a stack of matrices
    const WeightShare share = share_of(*l.linear, 1, rules_);
    const bool experts = l.linear->split == Split::expert;
    (experts ? out.planned_experts : out.planned_dense) += share;
    if (std::find(repacked_.begin(), repacked_.end(), l.linear->format) != repacked_.end())
      (experts ? out.experts : out.dense) += share.matrix_bytes;
  }
  return out;
}

// Of the layers, of the experts of layers, and of the head, that the CPU multiplies.
double MemoryModel::repacked_bytes(const Plan& plan, LayerRange layers, LayerRange experts,
                                   bool head) const {
  if (repacked_.empty()) return 0;
  const GgmlBits bits = ggml_bits(plan);
  // Of a mix that is known by its mean bits alone, nobody knows which matrices are of a type.
  const bool planned =
      !bits.as_stored && plan.mean_bits <= 0 &&
      std::find(repacked_.begin(), repacked_.end(), plan.weights) != repacked_.end();
  if (!bits.as_stored && !planned) return 0;
  auto dense_of = [&](const RepackShare& s, double b) {
    return planned ? bits.matrix_bytes(s.planned_dense, b) : s.dense;
  };
  const std::size_t kinds = kinds_.size();
  auto count = [&](std::size_t k, LayerRange r) {
    return kind_counts_[static_cast<std::size_t>(r.end) * kinds + k] -
           kind_counts_[static_cast<std::size_t>(r.begin) * kinds + k];
  };
  double sum = head ? dense_of(repack_head_, bits.head) : 0;
  for (std::size_t k = 0; k < kinds; ++k) {
    const RepackShare& s = repack_[k];
    sum += count(k, layers) * dense_of(s, bits.layers);
    sum += count(k, experts) *
           (planned ? bits.matrix_bytes(s.planned_experts, bits.experts) : s.experts);
  }
  return sum;
}

}  // namespace trigon
