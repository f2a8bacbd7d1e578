#pragma once
// Internal to the step room: the tables of training of a language model.

#include <atomic>
#include <bit>
#include <mutex>
#include <unordered_map>

#include "lower/operators.hpp"
#include "step/pass_time.hpp"

namespace trigon {

// Most operators of a table are in it many times: what divides experts changes no attention.
struct OperatorHash {
  std::size_t operator()(const Operator& o) const {
    std::uint64_t h = static_cast<std::uint64_t>(o.kind);
    for (double x : {o.m, o.n, o.k, o.groups, o.data_bytes, o.weight_bytes, o.sequences,
                     o.payload_bytes, static_cast<double>(o.ranks) * 65536 + o.stride}) {
      h = (h ^ std::bit_cast<std::uint64_t>(x)) * 1099511628211u;
      h ^= h >> 29;
    }
    return static_cast<std::size_t>(h);
  }
};
using OperatorTimes = std::unordered_map<Operator, TrainOperator, OperatorHash>;

// Passes that are made when first asked for, by whichever thread: a search that leaves most of its
// space by its memory never needs most of them.
class LaterPasses {
 public:
  LaterPasses(std::size_t count, std::int64_t sequence);
  const TrainPass& at(const Tables& t, std::size_t i, const Plan& plan);

 private:
  std::int64_t sequence_;
  std::vector<TrainPass> passes_;
  std::unique_ptr<std::atomic<bool>[]> ready_;
  std::mutex making_;
  OperatorTimes times_;
};

// Fills `pass`, or leaves it for later, and the FLOPs for sequences of `sequence` tokens.
void fill_train(Tables& t, std::int64_t sequence);

}  // namespace trigon
