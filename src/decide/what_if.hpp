#pragma once
// The same question with facts or settings changed, each case estimated as the question itself is.

#include <memory>

#include "decide/verbs.hpp"

namespace trigon {

struct WhatIf {
  std::string changes;  // as written: "bandwidth=2x,quant=fp8"
  Question question;
  Cluster cluster;
  // What the question and the cluster point to, where it is not the catalogue's.
  std::shared_ptr<const Accelerator> accelerator;
  std::shared_ptr<const Model> model;
};

struct WhatIfCase {
  WhatIf what;
  EstimateAnswer answer;
};
struct WhatIfAnswer {
  EstimateAnswer now;
  std::vector<WhatIfCase> cases;
};
// Errors: of the question as it is, or of a case, which then says so.
Result<WhatIfAnswer> what_if(const Catalogues&, const Question&, const Cluster&,
                             std::vector<WhatIf> cases);

// A case divided by what is, where both are known; 1: unchanged.
std::optional<double> factor_of(const PlanReport& now, const PlanReport& then, Metric m);

// Stores the weights of the plan in the 2:4 sparse form of their format.
Result<void> make_sparse(PlanRequest& plan, const Model& model, std::string_view where);

}  // namespace trigon
