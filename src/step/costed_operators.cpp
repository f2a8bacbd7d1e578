#include "step/pass_time.hpp"

namespace trigon {

std::vector<CostedOperator> costed_operators(const Tables& t, const Plan& plan) {
  Pass pass;
  if (std::holds_alternative<Serve>(t.job) || std::holds_alternative<Batch>(t.job)) {
    pass = decode_pass(t, plan.tensor, plan.expert, plan.micro_batch);
  } else {
    double sequence = 0;
    if (auto j = std::get_if<Train>(&t.job)) sequence = static_cast<double>(j->sequence);
    if (auto j = std::get_if<FineTune>(&t.job)) sequence = static_cast<double>(j->sequence);
    pass.sequences = plan.micro_batch;
    pass.new_tokens = sequence;
    pass.logits_rows = sequence;
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
  lower_embedding(*t.stack, pass, ops);
  take(1);
  for (const LayerRun& run : t.stack->runs) {
    lower_layer(*t.stack, run.layer, pass, ops);
    take(static_cast<double>(run.count));
  }
  lower_head(*t.stack, pass, ops);
  take(1);
  return out;
}

}  // namespace trigon
