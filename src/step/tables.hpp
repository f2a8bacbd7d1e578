#pragma once
// Compile, then evaluate. `prepare` costs each distinct (operator shape, degree, micro-batch) once
// into dense arrays; `evaluate` only indexes and adds. Single estimates, search, validation and
// the server all go through these two.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cost/device_model.hpp"
#include "job/job.hpp"
#include "memory/memory_model.hpp"
#include "step/evaluation.hpp"
#include "step/messages.hpp"

namespace trigon {

// The degrees that tables are made for. Plans outside it cannot be evaluated.
struct PlanDomain {
  std::vector<std::int32_t> tensor{1};
  std::vector<std::int32_t> expert{1};
  std::vector<std::int32_t> context{1};
  std::vector<std::int32_t> expert_tensor{0};  // as `expert_slices` says
  std::vector<ContextExchange> context_exchange{ContextExchange::ring};
  std::vector<std::int32_t> micro_batch{1};  // training: sequences per micro-batch
  std::vector<std::int32_t> batches{};       // serving: passes to tabulate; empty: a fine grid
  bool with_sequence_parallel = false, without_sequence_parallel = true;
  // Of both only the one that plans take: sequence parallelism wherever there are tensor ranks.
  bool sequence_parallel_by_tensor = false;
  bool passes_later = false;  // training: each pass is made when a plan first needs it
  // Formats of the plan; one table set is made for one choice.
  Format kv = Format::bf16, activations = Format::bf16;
  std::optional<Format> weights;  // replaces 16-bit weights
  // Storage and placement that only memory looks at.
  Format kv_values = Format::unknown, beside_experts = Format::unknown;
  double mean_bits = 0;
  std::int32_t gpu_layers = -1, experts_on_host = 0, main_card = 0;
  CardSplit card_split = CardSplit::layer;
  CardShares card_shares{};
  // Training.
  bool trains_matrices = false;  // none stays as narrow as its checkpoint holds it
  double expert_capacity = 0;  // rows of an expert over the even share, padded to; 0: as they come
};

// Seconds of one pass of an inference model shard.
struct PassTime {
  double layers = 0;  // all layers of the model; a pipeline stage takes its share
  double ends = 0;    // embedding, final norm and head
};

// Models that do whole items: `prefill` holds what runs once for an item, `decode` one denoising
// step, by items in a batch.
struct InferenceTables {
  std::vector<std::int32_t> batches;   // ascending grid of sequences per pass
  std::vector<PassTime> decode;        // [tensor][expert][batch]
  std::vector<PassTime> prefill;       // [tensor][expert][batch]: prompts of that many sequences
  std::vector<double> send_per_token;  // [tensor]: seconds a pipeline boundary adds per token
};

// Seconds of one micro-batch in some layers of a model shard, collectives included. Each part of
// the backward pass holds its share of what it waits for the host.
struct LayerWork {
  double forward = 0;
  double input = 0, weight = 0;   // backward: gradients of inputs; of weights
  double again = 0;               // part of forward that selective recomputation repeats
  double tensor = 0, expert = 0;  // parts of all of it: collectives of tensor parallelism; of
  double context = 0;             // experts; of context parallelism beyond what attention hides
  double backward() const { return input + weight; }
  double total() const { return forward + input + weight; }
  LayerWork& operator+=(const LayerWork& o);
  LayerWork operator-(const LayerWork& o) const;
  LayerWork operator*(double k) const;
};

// Of one micro-batch, by what training needs.
struct TrainPass {
  LayerWork layers;           // all of them
  LayerWork head, embedding;  // with the loss; front ends
  double boundary = 0;        // bytes of one pipeline send
  double buckets = 0;         // graphs: what copies of gradients to buckets and back add to a step
  std::vector<LayerWork> upto;  // of the layers before each; empty: all layers are alike
  // Of the layers [begin, end) of `count`.
  LayerWork of(std::int64_t begin, std::int64_t end, double count) const;
};

class LaterPasses;

struct TrainTables {
  // [tensor][expert][expert_tensor][context][context_exchange][sequence_parallel][micro_batch]
  std::vector<TrainPass> pass;
  std::shared_ptr<LaterPasses> later;  // instead of `pass`
  // Of the whole model, for one sequence.
  double forward_flops = 0, attention_forward_flops = 0, head_flops = 0;
  double parameters = 0, expert_parameters = 0, embedding_parameters = 0;
  double trainable_share = 1;  // of the parameters (adapters when fine-tuning with LoRA)
  double trainable_parameters = 0;
  bool frozen_base = false;
  double exchanged_bytes = 0;  // of one item: rows of divided tables, from their ranks and back
};

struct Tables {
  const Model* model = nullptr;
  // Whose output is the answer; null: the model does whole items by graphs.
  const Stack* stack = nullptr;
  const Stack* source = nullptr;  // the encoder that its cross-attention reads, if it has one
  Job job;
  Cluster cluster;  // as asked; evaluation takes counts from the plan
  EnginePolicy engine;
  DeviceModel device;
  PlanDomain domain;
  MemoryModel memory;
  InferenceTables inference;
  TrainTables train;
  // Models that do whole items: operators of [component][batch], which no coefficient changes.
  std::vector<OperatorList> item_operators;
  double layers = 0;  // of both stacks
  // What `reprice` times again: passes over prompts, decode steps.
  bool time_prompts = true, time_steps = true;
  // A request is done in one go: by graphs, or by an encoder.
  bool whole_items() const { return !stack || !stack->generates; }
};

// Errors: no calibration or peak for the device, a model without a language stack.
Result<Tables> prepare(const Model& model, const Job& job, const Cluster& cluster,
                       const EnginePolicy& engine, const Calibration& calibration,
                       const Range& usable_bytes, const PlanDomain& domain);

// The batches that the evaluation of one plan looks up: all that its tables need (for
// PlanDomain::batches). Empty where any batch may be asked for, as under a load to settle.
std::vector<std::int32_t> batches_of(const Model& model, const Job& job, const EnginePolicy& engine,
                                     const Plan& plan);

// The same tables under other engine coefficients.
void reprice(Tables& tables, const EngineCoefficients& engine);

// The plan's degrees must be in the domain of the tables. NaN where a metric does not apply.
template <class Recorder>
Evaluation evaluate(const Tables& tables, const Plan& plan, Recorder& recorder);

inline Evaluation evaluate(const Tables& tables, const Plan& plan) {
  NoRecord none;
  return evaluate(tables, plan, none);
}

// Of a training plan, what needs no memory: the step and what follows from it. The same numbers as
// those of `evaluate`.
Evaluation evaluate_time(const Tables& tables, const Plan& plan);

// Largest request rate that a serving plan sustains within the limits of the job.
double capacity_requests_per_second(const Tables& tables, Plan plan);

// "half", "fp8", "int4", "gguf" ...: the block of engine coefficients a checkpoint falls in;
// "graph-half", "graph-int8" ... for models that are graphs.
const char* weight_class(const Model& model, const PlanDomain& formats);
// The format of most weights: the plan's where it replaces 16 bit, else the checkpoint's.
Format stored_format(const Model& model, const PlanDomain& formats);

}  // namespace trigon
