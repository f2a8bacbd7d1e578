#pragma once
// Families: the groups of plans that a person thinks in ("no pipeline", "ZeRO-0", "tp1"), so that a
// search can say what is the best of each and why it lost.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/message.hpp"
#include "plan/plan.hpp"

namespace trigon {

enum class FamilyKind : std::uint8_t {
  tensor,     // of a degree
  pipeline,   // 0 none, 1 1F1B, 2 interleaved, 3 GPipe, 4 zero bubble
  context,    // 0 none, 1 ring, 2 all-to-all
  expert,     // 0 none, 1 some
  data,       // 0 one replica, 1 several
  zero,       // of a stage
  groups,     // 0 states divided over all replicas, 1 over parts of them
  recompute,  // of a kind
  offload     // of parts, as bits
};

struct Family {
  FamilyKind kind;
  std::int32_t value = 0;
  friend bool operator==(const Family&, const Family&) = default;
};

constexpr std::size_t kMostFamilies = 64;
using FamilySet = std::uint64_t;  // by bits

class Families {
 public:
  // At most 64 are kept; further ones are ignored.
  void add(Family f);
  const std::vector<Family>& all() const { return all_; }
  // Bits of the families that a plan belongs to by its degrees, and by what a rank does.
  FamilySet of_degrees(const Plan& p) const;
  FamilySet of_rank(const Plan& p) const;
  FamilySet of(const Plan& p) const { return of_degrees(p) | of_rank(p); }
  // Keeps the first reason of each family that `p` belongs to by its degrees.
  void refuse(const Plan& p, const Message& why);
  const std::optional<Message>& refused(std::size_t i) const { return refused_[i]; }

 private:
  std::vector<Family> all_;
  std::vector<std::optional<Message>> refused_;
};

bool belongs(const Family& f, const Plan& p);

// A total order of plans: fewer ranks to a model first, then degree by degree. Two plans that
// neither comes before the other are the same in everything that a search varies.
bool plan_before(const Plan& a, const Plan& b);

}  // namespace trigon
