#include "decide/what_if.hpp"

#include "decide/messages.hpp"
#include "decide/setup.hpp"

namespace trigon {

Result<WhatIfAnswer> what_if(const Catalogues& all, const Question& q, const Cluster& cluster,
                             std::vector<WhatIf> cases) {
  auto now = estimate(all, q, cluster);
  if (!now) return tl::unexpected(now.error());
  WhatIfAnswer out;
  out.now = std::move(*now);
  for (WhatIf& c : cases) {
    auto then = estimate(all, c.question, c.cluster);
    if (!then) {
      Error e = then.error();
      e.where = "--what-if " + c.changes;
      return tl::unexpected(std::move(e));
    }
    out.cases.push_back({std::move(c), std::move(*then)});
  }
  return out;
}

std::optional<double> factor_of(const PlanReport& now, const PlanReport& then, Metric m) {
  if (!now[m] || !then[m] || !(now[m]->value > 0)) return std::nullopt;
  return then[m]->value / now[m]->value;
}

Result<void> make_sparse(PlanRequest& plan, const Model& model, std::string_view where) {
  const Format now = plan.weights            ? *plan.weights
                     : language_stack(model) ? model.weight_format
                                             : Format::f16;
  auto sparse = sparse_of(now == Format::f32 ? Format::bf16 : now);
  if (!sparse)
    return fail(ErrorCode::unsupported,
                message(DecideMessage::sparse_of_16bit, model.id, info(now).name),
                std::string(where));
  plan.weights = *sparse;
  return {};
}

}  // namespace trigon
