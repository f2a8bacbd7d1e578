#pragma once
// How a job runs on a cluster: a plain value, the same for serving and training.

#include <cstdint>
#include <optional>
#include <string>

#include "model/format.hpp"

namespace trigon {

enum class Recompute : std::uint8_t { none, selective, full };

// What the weights, gradients and optimizer state of training are kept in.
enum class TrainRecipe : std::uint8_t {
  mixed_16bit,      // 16-bit weights and gradients, fp32 master weights and moments
  mixed_fp32_grad,  // the same with fp32 gradients (Megatron)
  pure_bf16,        // everything 16-bit
  autocast_fp32,    // fp32 weights, cast on the fly
  fp32
};

struct Plan {
  std::int32_t tensor = 1;    // TP
  std::int32_t pipeline = 1;  // PP
  std::int32_t virtual_stages = 1;
  std::int32_t data = 1;          // DP; replicas when serving
  std::int32_t context = 1;       // CP
  std::int32_t expert = 1;        // EP, inside the data x context group when training,
                                  // inside the tensor group when serving
  std::int32_t zero = 0;          // ZeRO stage (FSDP is 3)
  std::int32_t micro_batch = 1;   // sequences (training), or sequences in flight per replica
                                  // (serving: the decode batch)
  std::int32_t accumulation = 1;  // micro-batches per step and data rank
  Recompute recompute = Recompute::none;
  bool sequence_parallel = false;
  TrainRecipe recipe = TrainRecipe::mixed_16bit;
  Format weights = Format::bf16;  // what the matrices are stored in
  Format kv = Format::bf16;
  Format activations = Format::bf16;  // what the arithmetic uses

  std::int32_t ranks() const { return tensor * pipeline * data * context; }
};

// "tp4 pp2 dp8 zero1 mb2": degrees of one are left out; "1 card" plans say "tp1".
std::string write_plan(const Plan& p);

}  // namespace trigon
