#pragma once
// From a question and a cluster to what `prepare` needs: the job, the engine on this card, the
// bytes it may use, and the plan that was asked or is the engine's default.

#include "decide/catalogues.hpp"
#include "decide/verbs.hpp"
#include "step/tables.hpp"

namespace trigon {

struct Setup {
  const Model* model = nullptr;
  const Stack* stack = nullptr;  // null: the model does whole items by graphs
  Job job;
  Cluster cluster;
  EnginePolicy engine;
  const Calibration* calibration = nullptr;
  Range usable;  // bytes the driver reports, less what others use
  std::vector<Assumption> assumptions;
  bool training = false;
  std::int64_t global_batch = 0;  // training: sequences per step
};

// Errors: bad job, unknown engine, an engine that does not run this job or this vendor's cards.
Result<Setup> set_up(const Catalogues& all, const Question& question, const Cluster& cluster);

// The formats a plan runs in, what was not fixed filled from the checkpoint.
PlanDomain formats_of(const Setup& s, const PlanRequest& fixed);
// A domain that holds exactly the degrees of `plan`.
PlanDomain domain_of(const Setup& s, const PlanRequest& fixed, const Plan& plan);

// The one plan that the request and the engine's defaults describe on the whole cluster; what was
// assumed is added to the setup. Refused when degrees do not multiply to the cluster's cards.
Result<Plan> default_plan(Setup& s, const PlanRequest& fixed);

// Sequences that one replica of a batch job runs at once: what memory and the engine allow.
std::int32_t largest_batch(const MemoryModel& memory, const Setup& s, const Plan& plan);

// Layers that a pipeline may cut; a graph counts as one.
std::int64_t layers_of(const Setup& s);

// Copies formats into the plan.
void apply_formats(Plan& plan, const PlanDomain& formats, const Setup& s);

Result<Tables> prepare_for(const Setup& s, const PlanDomain& domain);

// A reason why the plan cannot run whatever the memory: divisibility, support.
std::optional<Message> illegal(const Setup& s, const Plan& plan);
// The flag that a reason of illegal() is about: "--tp".
const char* flag_of(const Message& reason);
// Why no plan was found, from the reason given by the search, or from the degrees asked for.
Error no_plan(const Setup& s, const PlanRequest& fixed, const std::optional<Message>& reason);

}  // namespace trigon
