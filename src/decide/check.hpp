#pragma once
// `check`: a log of an out-of-memory error, what to change, and, where model and hardware are
// known, what Trigon's own account of that memory says.

#include "decide/catalogues.hpp"
#include "decide/oom_advice.hpp"
#include "decide/verbs.hpp"

namespace trigon {

struct OomPrediction {
  FitAnswer now;
  std::optional<MemoryTerm> term;  // what the log's component is called here
  double term_bytes = 0;           // predicted
  std::vector<FittingChange> changes;
};

struct CheckAnswer {
  OomReport report;
  std::vector<std::vector<OomAdvice>> advice;  // of each event
  std::optional<OomPrediction> prediction;
  std::vector<Assumption> assumptions;
};

// Reads the log and advises. Refused when it holds nothing that is known.
Result<CheckAnswer> check_log(std::string_view text, const std::string& where);

// What the first event says of the job, for what the question leaves open: engine, longest
// sequence, memory share. Returns what was taken.
std::vector<Assumption> take_from_log(const OomReport& report, const Catalogues& all, Question& q);

Result<OomPrediction> predict(const Catalogues& all, const Question& q, const Cluster& cluster,
                              const OomReport& report);

}  // namespace trigon
