#include "search/families.hpp"

#include <tuple>

namespace trigon {
namespace {

bool by_degree(FamilyKind k) { return k <= FamilyKind::data; }

int offload_bits(const Plan& p) {
  return (p.offload_optimizer ? 1 : 0) + (p.offload_weights ? 2 : 0) +
         (p.offload_activations ? 4 : 0);
}

// The schedule that most run comes first.
int schedule_place(Schedule s) { return s == Schedule::one_f_one_b ? 0 : 1 + static_cast<int>(s); }

auto order_of(const Plan& p) {
  return std::make_tuple(
      p.tensor * p.pipeline, p.tensor, p.virtual_stages, schedule_place(p.schedule), p.context,
      static_cast<int>(p.context_exchange), p.expert, p.expert_tensor, p.zero, p.optimizer_groups,
      static_cast<int>(p.recompute), offload_bits(p), static_cast<int>(p.recipe), p.micro_batch,
      p.data, static_cast<int>(p.weights));
}

std::int32_t pipeline_kind(const Plan& p) {
  if (p.pipeline == 1) return 0;
  if (p.virtual_stages > 1) return 2;
  return p.schedule == Schedule::gpipe ? 3 : p.schedule == Schedule::zero_bubble ? 4 : 1;
}

}  // namespace

bool belongs(const Family& f, const Plan& p) {
  switch (f.kind) {
    case FamilyKind::tensor:
      return p.tensor == f.value;
    case FamilyKind::pipeline:
      return f.value == pipeline_kind(p);
    case FamilyKind::context:
      return f.value == (p.context == 1 ? 0 : p.context_exchange == ContextExchange::ring ? 1 : 2);
    case FamilyKind::expert:
      return f.value == (p.expert > 1 ? 1 : 0);
    case FamilyKind::data:
      return f.value == (p.data > 1 ? 1 : 0);
    case FamilyKind::zero:
      return p.zero == f.value;
    case FamilyKind::groups:
      return p.zero > 0 && f.value == (p.optimizer_groups > 1 ? 1 : 0);
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

FamilySet Families::of_degrees(const Plan& p) const {
  FamilySet out = 0;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (by_degree(all_[i].kind) && belongs(all_[i], p)) out |= FamilySet{1} << i;
  return out;
}

FamilySet Families::of_rank(const Plan& p) const {
  FamilySet out = 0;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (!by_degree(all_[i].kind) && belongs(all_[i], p)) out |= FamilySet{1} << i;
  return out;
}

void Families::refuse(const Plan& p, const Message& why) {
  const FamilySet of = of_degrees(p);
  for (std::size_t i = 0; i < all_.size(); ++i)
    if ((of >> i & 1) && !refused_[i]) refused_[i] = why;
}

bool plan_before(const Plan& a, const Plan& b) { return order_of(a) < order_of(b); }

}  // namespace trigon
