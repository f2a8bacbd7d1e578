#include "step/items.hpp"
#include "step/pass_time.hpp"

namespace trigon {

std::vector<CostedOperator> costed_operators(const Tables& t, const Plan& plan) {
  if (!t.stack) {
    std::vector<CostedOperator> all;
    const bool training = !t.memory.serving();
    for (const Component& c : t.model->components) {
      if (training ? c.training == Component::Training::absent : !c.serves) continue;
      OperatorList list;
      const double rows = training ? 1 : static_cast<double>(c.rows);
      lower_component(t, c, plan.micro_batch * rows, training, list);
      const double runs =
          !training && c.runs == Runs::each_step ? static_cast<double>(t.model->item->steps) : 1;
      for (const Operator& op : list)
        all.push_back({op, operator_time(t.device, op), op.repeat * runs});
    }
    return all;
  }
  Pass pass;
  std::int64_t sequence = 0;
  if (std::holds_alternative<Serve>(t.job) || std::holds_alternative<Batch>(t.job)) {
    pass = t.stack->generates ? decode_pass(t, plan.tensor, plan.expert, plan.micro_batch)
                              : encoder_pass(t, plan.tensor, plan.expert, plan.micro_batch);
  } else {
    if (auto j = std::get_if<Train>(&t.job)) sequence = j->sequence;
    if (auto j = std::get_if<FineTune>(&t.job)) sequence = j->sequence;
    pass.sequences = plan.micro_batch;
    pass.activations = t.domain.activations;
    pass.tensor = plan.tensor;
    pass.expert = plan.expert;
    pass.context = plan.context;
    pass.expert_inside_tensor = false;
    pass.sequence_parallel = plan.sequence_parallel;
    pass.replace_weights = t.domain.weights;
  }
  std::vector<CostedOperator> out;
  OperatorList ops;
  auto take = [&](double repeat) {
    for (const Operator& op : ops) out.push_back({op, operator_time(t.device, op), repeat});
    ops.clear();
  };
  auto walk = [&](const Stack& stack, const Pass& p) {
    lower_embedding(stack, p, ops);
    take(1);
    for (const LayerRun& run : stack.runs) {
      lower_layer(stack, run.layer, p, ops);
      take(static_cast<double>(run.count));
    }
    lower_head(stack, p, ops);
    take(1);
  };
  if (sequence > 0 && t.source) walk(*t.source, training_pass(t, *t.source, sequence, pass));
  walk(*t.stack, sequence > 0 ? training_pass(t, *t.stack, sequence, pass) : pass);
  return out;
}

}  // namespace trigon
