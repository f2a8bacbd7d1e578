#include "search/families.hpp"

#include <tuple>

namespace trigon {
namespace {

bool by_degree(FamilyKind k) { return k <= FamilyKind::data; }

int offload_bits(const Plan& p) {
  return (p.offload_optimizer ? 1 : 0) + (p.offload_weights ? 2 : 0) +
         (p.offload_activations ? 4 : 0);
}

auto order_of(const Plan& p) {
  return std::make_tuple(p.tensor * p.pipeline, p.tensor, p.virtual_stages, p.context, p.expert,
                         p.expert_tensor, p.zero, static_cast<int>(p.recompute), offload_bits(p),
                         static_cast<int>(p.recipe), p.micro_batch, p.data,
                         static_cast<int>(p.weights));
}

}  // namespace

bool belongs(const Family& f, const Plan& p) {
  switch (f.kind) {
    case FamilyKind::tensor:
      return p.tensor == f.value;
    case FamilyKind::pipeline:
      return f.value == (p.pipeline == 1 ? 0 : p.virtual_stages == 1 ? 1 : 2);
    case FamilyKind::context:
      return f.value == (p.context > 1 ? 1 : 0);
    case FamilyKind::expert:
      return f.value == (p.expert > 1 ? 1 : 0);
    case FamilyKind::data:
      return f.value == (p.data > 1 ? 1 : 0);
    case FamilyKind::zero:
      return p.zero == f.value;
    case FamilyKind::recompute:
      return static_cast<std::int32_t>(p.recompute) == f.value;
    case FamilyKind::offload:
      return offload_bits(p) == f.value;
  }
  return false;
}

void Families::add(Family f) {
  for (const Family& known : all_)
    if (known == f) return;
  if (all_.size() == kMostFamilies) return;
  all_.push_back(f);
  refused_.emplace_back();
}

std::uint32_t Families::of_degrees(const Plan& p) const {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (by_degree(all_[i].kind) && belongs(all_[i], p)) out |= std::uint32_t{1} << i;
  return out;
}

std::uint32_t Families::of_rank(const Plan& p) const {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (!by_degree(all_[i].kind) && belongs(all_[i], p)) out |= std::uint32_t{1} << i;
  return out;
}

void Families::refuse(const Plan& p, const Message& why) {
  const std::uint32_t of = of_degrees(p);
  for (std::size_t i = 0; i < all_.size(); ++i)
    if ((of >> i & 1) && !refused_[i]) refused_[i] = why;
}

bool plan_before(const Plan& a, const Plan& b) { return order_of(a) < order_of(b); }

}  // namespace trigon
