#pragma once
// From a measured row to a question that Trigon can answer: what was run, and which of the
// answer's numbers the measurement is to be held against. A row that cannot be expressed is
// refused with a reason.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "decide/verbs.hpp"
#include "evidence/readout.hpp"
#include "evidence/row.hpp"
#include "evidence/timed_case.hpp"
#include "model/item_options.hpp"

namespace trigon {

enum class RefusalReason : std::uint8_t {
  // Out of scope, reported apart: networks that the catalogue does not hold; tails and queues under
  // load, which only a simulation of events can answer.
  network_outside_catalogue,
  needs_simulation,
  // In scope, not predicted.
  schema_not_supported,
  metric_not_supported,
  doubtful,  // the evidence's own `trust` column excludes it
  hardware_not_stated,
  hardware_unknown,
  engine_not_stated,
  engine_unknown,
  format_unknown,
  input_missing,  // a length, a batch, a number of cards
  speculative_decoding,
  disaggregated,
  offloading,  // weights or states in host memory
  method_not_supported,
  bad_value,
  prediction_failed,
  count_
};
constexpr std::size_t kRefusalReasons = static_cast<std::size_t>(RefusalReason::count_);
const char* refusal_name(RefusalReason r);
inline bool out_of_scope(RefusalReason r) {
  return r == RefusalReason::network_outside_catalogue || r == RefusalReason::needs_simulation;
}

struct Case {
  std::string id, source, date, where;
  int fold = 0;
  std::vector<Cluster> hardware;  // one for each card that the row's name may mean
  std::shared_ptr<const Model> model;
  Question question;
  // When set, the readout's seconds of this question are taken off: a chunk of a prompt behind
  // tokens already in the cache is the whole less the part before.
  std::optional<Question> before;
  // Set: operators or a collective timed alone; the question is not asked.
  std::optional<TimedCase> timed;
  bool tuned = false;  // what the row leaves open was tuned: the best legal plan
  Readout readout;
  double measured = 0;  // in the readout's unit
  std::vector<Assumption> assumptions;
};

struct Refusal {
  RefusalReason reason = RefusalReason::prediction_failed;
  std::string subject;  // the column, name or metric it is about
};

using CaseOrRefusal = std::variant<Case, Refusal>;

// How the names in rows resolve. `row_names(catalogues)` uses the catalogues; tests inject theirs.
struct MachineColumns {
  const Accelerator* accelerator = nullptr;
  int cards = 1, per_node = 1;
  std::string_view intra_link;
  std::optional<double> inter_gbps;  // Gb/s of one accelerator, one direction
};
struct RowNames {
  // All cards that the name may mean; empty when it is unknown.
  std::function<std::vector<const Accelerator*>(std::string_view)> hardware;
  std::function<Result<Cluster>(const MachineColumns&)> cluster;
  // Null when the catalogue does not hold it.
  std::function<std::shared_ptr<const Model>(std::string_view)> model;
  // A network that does whole items, for the item that is asked. Null when no network has the name.
  std::function<std::shared_ptr<const Model>(std::string_view, const ItemOptions&)> network;
  // The model with its weights stored in a file type that mixes formats ("Q4_K_M").
  std::function<std::shared_ptr<const Model>(const std::shared_ptr<const Model>&, std::string_view)>
      model_in_file_type;
  // "id" or "id@version" of an engine, absent when it is unknown.
  std::function<std::optional<std::string>(std::string_view name, std::string_view version,
                                           std::string_view date)>
      engine;
  // Whether an engine runs on processors; no function: not checked.
  std::function<bool(std::string_view engine)> runs_on_processors;
  // The coefficients fitted without a fold, for rows of the evidence that coefficients were fitted
  // on. Null (or no function): those that ship.
  std::function<const Calibration*(int fold)> unseen;
  // The same for operators and collectives timed alone, which have folds of their own; without
  // them those that ship.
  std::function<const Calibration*(int fold)> unseen_operators;
  const Calibration* shipped = nullptr;
};

CaseOrRefusal read_case(Schema schema, const Row& row, const RowNames& names);

// Models that do whole items: what is asked and measured of them.
bool whole_items(const Case& c);
std::optional<Refusal> read_item_inference(const Row& row, Case& c);
std::optional<Refusal> read_item_training(const Row& row, Case& c);

CaseOrRefusal read_train_case(const Row& row, const RowNames& names);
CaseOrRefusal read_infer_case(const Row& row, const RowNames& names);
CaseOrRefusal read_memory_case(const Row& row, const RowNames& names);
CaseOrRefusal read_ops_case(const Row& row, const RowNames& names);
CaseOrRefusal read_comm_case(const Row& row, const RowNames& names);
CaseOrRefusal read_matmul_case(const Row& row, const RowNames& names);
// "all_reduce", "alltoall", as tables and nccl-tests write them.
std::optional<Collective> collective_by_name(std::string_view name);

}  // namespace trigon
