#pragma once
// Bytes per rank of a plan. `prepare` reads model, job, engine and card once; `evaluate` only
// looks up and adds. Formulas and their sources: docs/memory.md.

#include <array>
#include <cstdint>
#include <vector>

#include "base/record.hpp"
#include "base/result.hpp"
#include "engine/policy.hpp"
#include "hardware/cluster.hpp"
#include "job/job.hpp"
#include "memory/compute_buffer.hpp"
#include "memory/graph_bytes.hpp"
#include "memory/layer_share.hpp"
#include "memory/memory.hpp"
#include "memory/saved.hpp"
#include "model/model.hpp"
#include "plan/plan.hpp"
#include "plan/stages.hpp"

namespace trigon {

// The rank with the least room left: where budgets follow from a rank's own terms (see
// `budget_bytes`) it need not be the one that holds most.
struct FullestRank {
  RankMemory memory;
  int stage = 0;
};

// What a replica holds beside its weights. All of it follows from `evaluate` read backwards.
struct Capacity {
  double pool_bytes = 0;     // left for caches on the rank that has least
  double kv_tokens = 0;      // of sequences of the asked context, per replica, whole blocks
  double max_sequences = 0;  // of the asked context, per replica
  double max_context = 0;    // tokens, with the plan's sequences; at most the model's own maximum
};

class MemoryModel {
 public:
  // `usable_reported_bytes`: what the driver reports minus what others use, with its range.
  // `model` must outlive the result.
  static Result<MemoryModel> prepare(const Model& model, const Job& job, const Cluster& cluster,
                                     const EnginePolicy& engine, Range usable_reported_bytes);

  // Peak bytes on a rank of pipeline stage `stage`, by term. No heap without a recorder.
  template <class Recorder>
  RankMemory evaluate(const Plan& plan, int stage, Recorder& recorder) const;
  FullestRank fullest(const Plan& plan) const;

  // What engine and driver let a rank use, comparable with RankMemory::total().
  Range budget_bytes(const Plan& plan, const RankMemory& memory) const;
  Range budget_bytes(const Plan& plan) const;
  bool fits(const Plan& plan) const;
  Capacity capacity(const Plan& plan) const;

  bool serving() const { return serving_; }
  // The model does whole items by graphs: no cache, and only data parallelism divides anything.
  bool graphs() const { return !graphs_.empty(); }
  const EnginePolicy& engine() const { return engine_; }
  // Bytes of weights and cached tokens on one rank, for those who price reading them.
  double weight_bytes(const Plan& plan, int stage) const;
  double cache_bytes(const Plan& plan, int stage, double sequences, double context) const;

 private:
  // One distinct layer on one rank of a tensor-parallel degree.
  struct KindShare {
    LayerShare weights;
    CacheShare cache;
    std::array<ActivationBytes, 2> forward;               // without, with sequence parallelism
    std::array<ActivationBytes, 2> backward;              // gradients alive beside what was saved
    std::array<std::array<ActivationBytes, 3>, 2> saved;  // x none, selective, full recompute
    std::array<ExpertBytes, 3> experts;                   // routed experts' part, beside `saved`
  };
  // Outside the layers, on one rank of a tensor-parallel degree.
  struct EndShare {
    WeightShare embedding, head, rest;
    WeightShare before;  // of the first stage beside the embedding: an encoder's ends, front ends
    double head_rows = 0;
  };
  struct Load {  // what is asked of serving
    double sequences = 1, context = 0, prompt = 0;
    double source = 0;  // tokens that cross-attention reads
  };
  struct StageLayers;
  // Weights of the whole model on one card, by what a quantiser treats alike.
  struct Totals {
    WeightShare layers, experts, embedding, head, rest;
    double per_file() const {  // parameters: a tied head is the embedding again
      return layers.parameters() + experts.parameters() + embedding.parameters() +
             head.parameters() + rest.parameters();
    }
  };

  void take_drafts(const Model& model);
  KindShare kind_share(std::size_t kind, int tensor) const;
  EndShare end_share(int tensor) const;
  Totals totals() const;
  const KindShare& kind_at(std::size_t kind, int tensor, KindShare& scratch) const;
  int degree_index(int tensor) const;
  StageLayers stage_layers(const Plan& plan, int stage) const;
  double weight_bits(const Plan& plan) const;
  double cache_of(const Plan& plan, int stage, const Load& load) const;
  double layer_cache(std::size_t kind, const Plan& plan, const Load& load) const;
  // ggml: one buffer a device sized for a micro-batch, and a host that holds what cards do not.
  bool by_ggml() const { return serving_ && engine_.compute_buffer; }
  struct GgmlBits;
  GgmlBits ggml_bits(const Plan& plan) const;
  struct GgmlWeights {
    double on_card = 0, head = 0;  // `head` is part of `on_card`
    double on_host = 0, twice = 0, embedding = 0;
  };
  GgmlWeights ggml_weights(const Plan& plan, int stage) const;
  // Split by rows: the matrices of a layer, and what of them a card has.
  struct SplitMatrix {
    std::int64_t rows = 0, columns = 0;
    WeightShare share;
    Format format = Format::bf16;
  };
  // Matrices that the CPU's kernels want in a layout of their own.
  struct RepackShare {
    double dense = 0, experts = 0;               // bytes of those that are stored so
    WeightShare planned_dense, planned_experts;  // all that can be
  };
  void take_repacked(const Cluster& cluster);
  RepackShare repack_share(const std::vector<NamedLinear>& linears) const;
  double repacked_bytes(const Plan& plan, LayerRange layers, LayerRange experts, bool head) const;
  bool by_rows(const Plan& plan) const {
    return plan.card_split == CardSplit::row && plan.pipeline > 1 &&
           engine_.row_split != RowSplit::never;
  }
  std::vector<SplitMatrix> split_matrices(std::size_t kind) const;
  double rows_on_card(const Plan& plan, const SplitMatrix& matrix, double bytes, int home,
                      int card) const;
  double row_weights(const Plan& plan, int stage, std::size_t kind) const;
  double head_rows(const Plan& plan, int stage, double bytes) const;
  double row_scratch(const Plan& plan, int stage, double tokens) const;
  ComputeBuffer micro_batch(const Plan& plan, const Load& load) const;
  std::vector<BufferLayer> some_layers(LayerRange range, const Plan& plan) const;
  DeviceBuffers ggml_buffers(const Plan& plan, int stage, const ComputeBuffer& pass) const;
  template <class Recorder>
  RankMemory ggml_memory(const Plan& plan, int stage, const Load& load, Recorder& recorder) const;
  double kept_tokens(const CacheShare& cache, const Load& load, double page) const;
  double page_tokens(const Plan& plan) const;
  double state_slot_bytes(const Plan& plan, double page, const CacheShare& cache) const;
  double widest_token_bytes(const Plan& plan) const;
  double activation_element(const Plan& plan) const;
  bool weight_only(const Plan& plan) const;
  double unpacked_bytes(const Plan& plan, int stage) const;
  struct MediaRun;
  MediaRun media_run(const Load& load, double budget) const;
  template <class Recorder>
  double media_bytes(const Plan& plan, const Load& load, double budget, double others,
                     Recorder& recorder) const;
  double media_share() const;
  double graph_bytes(const Plan& plan) const;
  double collective_bytes(int ranks) const;
  template <class Recorder>
  WeightShare stage_weights(const Plan& plan, int stage, WeightShare* experts,
                            Recorder& recorder) const;
  template <class Recorder>
  RankMemory serving_memory(const Plan& plan, int stage, const Load& load,
                            Recorder& recorder) const;
  template <class Recorder>
  RankMemory training_memory(const Plan& plan, int stage, Recorder& recorder) const;
  // Of matrix libraries on a rank, while it trains.
  double workspace_bytes(bool experts) const;
  template <class Recorder>
  void add_runtime(const Plan& plan, RankMemory& memory, Recorder& recorder) const;
  // What one rank offloads, of all ranks of a node.
  template <class Recorder>
  void add_host(const Plan& plan, RankMemory& memory, Recorder& recorder) const;
  // What the terms of a rank are summed from, for those who listen.
  void explain_weights(const Plan& plan, int stage, Record& record) const;
  void explain_ggml_weights(const Plan& plan, int stage, std::size_t kind, std::string where,
                            Record& record) const;
  void explain_cache(const Plan& plan, int stage, const Load& load, Record& record) const;
  void explain_saved(const Plan& plan, int stage, Record& record) const;
  ActivationRules activation_rules(std::size_t kind, int tensor) const;
  FullestRank fullest_at(const Plan& plan, const Load& load) const;
  bool fits_at(const Plan& plan, const Load& load) const;
  Load asked(const Plan& plan) const;

  // A component that is a graph, and how a pass of one item meets it.
  struct GraphPart {
    GraphBytes bytes;
    double rows = 1;  // of a batch for one item in inference
    bool serves = true, trained = true, frozen = false;
  };
  static std::vector<GraphPart> graph_parts(const Model& model, const EnginePolicy& engine,
                                            const Job& job);
  template <class Recorder>
  RankMemory graph_memory(const Plan& plan, double items, Recorder& recorder) const;
  double graph_weight_bytes(const GraphPart& part, const Plan& plan, double trained_bytes) const;

  const Stack* stack_ = nullptr;
  std::vector<const Stack*> stacks_;  // the encoder, where there is one, then `stack_`
  std::int64_t layers_ = 0;           // of all stacks
  std::vector<GraphPart> graphs_;
  EnginePolicy engine_;
  Format main_format_ = Format::bf16;
  bool serving_ = true;
  bool tuning_ = false;  // adapters on a frozen base
  bool quantised_base_ = false;
  double adapter_rank_ = 0;
  AdapterTargets targets_ = kAllLinears;
  bool dora_ = false;
  AdapterForm form_;
  double input_tokens_ = 0, output_tokens_ = 0;  // serving
  double sequence_ = 0, source_ = 0;             // training
  Range usable_;
  int most_ranks_ = 1, per_node_ = 1;
  bool dropout_ = false;   // of training, on any layer
  double capability_ = 0;  // compute capability of an NVIDIA card
  double channels_ = 0;    // that a communicator opens between the ranks of a node
  double tower_bytes_ = 0, tower_parameters_ = 0;  // of vision towers
  const Stack* tower_ = nullptr;                   // that images of known limits go through
  std::vector<const Layer*> kinds_;                // distinct layers
  std::vector<const Stack*> kind_stacks_;          // the stack of each
  std::vector<char> kind_shared_;  // whether all layers of a kind are one set of weights
  // Of layers for multi-token prediction that train with the model: beside those counted.
  std::size_t draft_kind_ = 0;
  std::int64_t draft_layers_ = 0;
  std::vector<CacheRun> caches_;            // of each kind
  std::vector<std::uint16_t> kind_counts_;  // [layer x kinds]: layers of a kind before it
  std::vector<KindShare> shares_;           // [degree index x kinds]
  std::vector<EndShare> ends_;
  std::vector<Format> repacked_;     // empty: none are
  std::int64_t repacked_rows_ = 8;   // of a block in that layout
  bool on_cpu_ = false;              // the device is a CPU
  std::vector<RepackShare> repack_;  // of each kind
  RepackShare repack_head_;
  Totals totals_;  // serving by ggml; `head` is empty where it is tied
  std::vector<std::vector<SplitMatrix>> split_matrices_;  // of each kind, where rows may be split
  ShareRules rules_;
};

extern template RankMemory MemoryModel::evaluate(const Plan&, int, NoRecord&) const;
extern template RankMemory MemoryModel::evaluate(const Plan&, int, Record&) const;

}  // namespace trigon
