#pragma once
// How a job runs on a cluster: a plain value, the same for serving and training.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

std::string_view recipe_name(TrainRecipe r);  // "mixed_16bit"
std::optional<TrainRecipe> recipe_of(std::string_view name);

enum class Optimizer : std::uint8_t {
  adamw,             // two moments
  adamw_8bit,        // two moments of one byte and a scale for each block of 256
  adamw_8bit_paged,  // the same in unified memory, which the driver moves to the host when short
  adafactor,         // a row and a column of second moments for each matrix
  lion,              // one moment
  muon,              // one moment for matrices of the layers, AdamW for the rest
  sgd,               // nothing
  sgd_momentum       // one moment
};
std::string_view optimizer_name(Optimizer o);
std::optional<Optimizer> optimizer_of(std::string_view name);

// How ggml deals a model to several cards (-sm).
enum class CardSplit : std::uint8_t {
  layer,  // layers with their caches, in the order of the cards
  row,    // each matrix by its rows, over all cards
  none,   // one card has everything
  // Tensor parallelism of newer releases: each card has a part of every matrix and of the caches.
  tensor,  // llama.cpp (pull 19378)
  graph    // ik_llama.cpp
};
std::string_view card_split_name(CardSplit s);
std::optional<CardSplit> card_split_of(std::string_view name);

// Shares of the cards (-ts), in the order of the cards; all zero: equal ones.
constexpr std::size_t kMostShares = 16;  // GGML_CUDA_MAX_DEVICES
using CardShares = std::array<float, kMostShares>;
// In which order a pipeline stage runs the passes of its micro-batches.
enum class Schedule : std::uint8_t {
  gpipe,        // all forward passes, then all backward passes
  one_f_one_b,  // backward passes as early as they can (PipeDream-Flush)
  interleaved,  // the same over several virtual stages on each rank (Megatron-LM)
  zero_bubble   // ZB-H1: gradients of weights fill what would be idle (arXiv:2401.10241)
};
std::string_view schedule_name(Schedule s);  // "1f1b"
std::optional<Schedule> schedule_of(std::string_view name);

// How context-parallel ranks share attention.
enum class ContextExchange : std::uint8_t {
  ring,       // keys and values go round while each part is attended to (arXiv:2310.01889)
  all_to_all  // heads against sequence parts before and after (Ulysses, arXiv:2309.14509)
};
std::string_view context_exchange_name(ContextExchange c);  // "ring", "all-to-all"
std::optional<ContextExchange> context_exchange_of(std::string_view name);

struct Plan {
  std::int32_t tensor = 1;    // TP
  std::int32_t pipeline = 1;  // PP
  std::int32_t virtual_stages = 1;
  Schedule schedule = Schedule::one_f_one_b;  // with virtual stages it is interleaved
  ContextExchange context_exchange = ContextExchange::ring;
  std::int32_t data = 1;           // DP; replicas when serving
  std::int32_t context = 1;        // CP
  std::int32_t expert = 1;         // EP, inside the data x context group when training,
                                   // inside the tensor group when serving
  std::int32_t expert_tensor = 0;  // ranks that divide one expert in training; 0: what
                                   // `expert_tensor_ranks` derives
  std::int32_t zero = 0;           // ZeRO stage (FSDP is 3)
  std::int32_t micro_batch = 1;    // sequences (training), or sequences in flight per replica
                                   // (serving: the decode batch)
  std::int32_t accumulation = 1;   // micro-batches per step and data rank
  Recompute recompute = Recompute::none;
  std::int32_t recompute_layers = 0;  // of a stage, that full recomputation covers; 0: all
  bool sequence_parallel = false;
  std::int32_t optimizer_groups = 1;   // parts of the data x context group that each hold the
                                       // divided state whole; with ZeRO-3 that is hybrid sharding
                                       // (HSDP)
  std::int32_t interleave_group = 0;   // micro-batches that a virtual stage takes in a row; 0: as
                                       // many as stages
  std::int32_t last_stage_layers = 0;  // of the model, on the last stage; 0: even shares
  bool reference = false;  // a frozen copy of the model answers beside it (DPO, arXiv:2305.18290)
  bool reshard = true;     // ZeRO-3: gathered weights are dropped after the forward pass
  TrainRecipe recipe = TrainRecipe::mixed_16bit;
  Optimizer optimizer = Optimizer::adamw;
  // Kept in host memory between uses.
  bool offload_optimizer = false, offload_weights = false, offload_activations = false;
  Format weights = Format::bf16;  // what the matrices are stored in
  Format kv = Format::bf16;
  Format kv_values = Format::unknown;  // of cached values, where not that of the keys
  Format activations = Format::bf16;   // what the arithmetic uses
  // A file that mixes formats by a recipe of its own: mean bits of all its weights (0: `weights`
  // says it), and the format of all but the routed experts, of the embedding where there are none.
  double mean_bits = 0;
  Format beside_experts = Format::unknown;
  // ggml: the last so many layers lie on cards, the head counting as one more (-1: all); routed
  // experts of the first so many layers lie in host memory.
  std::int32_t gpu_layers = -1, experts_on_host = 0;
  CardSplit card_split = CardSplit::layer;
  std::int32_t main_card = 0;  // -mg: has what rows are not split of, where that is not dealt
  CardShares card_shares{};

  Schedule pipeline_schedule() const {
    return virtual_stages > 1 && schedule == Schedule::one_f_one_b ? Schedule::interleaved
                                                                   : schedule;
  }
  std::int32_t ranks() const { return tensor * pipeline * data * context; }
  bool has_shares() const {
    for (float share : card_shares)
      if (share > 0) return true;
    return false;
  }
};

// "tp4 pp2 dp8 zero1 recompute": degrees of one are left out; plans of one card say "tp1".
std::string write_plan(const Plan& p);

}  // namespace trigon
