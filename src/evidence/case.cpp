#include "evidence/case.hpp"

#include <array>

namespace trigon {

const char* refusal_name(RefusalReason r) {
  constexpr std::array<const char*, kRefusalReasons> names = {"network_outside_catalogue",
                                                              "needs_simulation",
                                                              "schema_not_supported",
                                                              "metric_not_supported",
                                                              "doubtful",
                                                              "hardware_not_stated",
                                                              "hardware_unknown",
                                                              "engine_not_stated",
                                                              "engine_unknown",
                                                              "format_unknown",
                                                              "input_missing",
                                                              "speculative_decoding",
                                                              "disaggregated",
                                                              "offloading",
                                                              "method_not_supported",
                                                              "bad_value",
                                                              "prediction_failed"};
  return names[static_cast<std::size_t>(r)];
}

namespace {

// Rows with a fold of their own are the evidence that coefficients were fitted on.
CaseOrRefusal judged_unseen(CaseOrRefusal read, const Row& row, const RowNames& names) {
  auto* c = std::get_if<Case>(&read);
  if (!c || !names.unseen || !row.has_column("fold")) return read;
  c->question.measured = true;
  c->question.calibration = names.unseen(c->fold);
  if (c->before) {
    c->before->measured = true;
    c->before->calibration = c->question.calibration;
  }
  return read;
}

CaseOrRefusal timed(CaseOrRefusal read, const Row& row, const RowNames& names) {
  auto* c = std::get_if<Case>(&read);
  if (!c) return read;
  if (names.unseen_operators && row.has_column("fold"))
    c->timed->calibration = names.unseen_operators(c->fold);
  if (!c->timed->calibration) c->timed->calibration = names.shipped;
  return read;
}

}  // namespace

CaseOrRefusal read_case(Schema schema, const Row& row, const RowNames& names) {
  switch (schema) {
    case Schema::train:
      return judged_unseen(read_train_case(row, names), row, names);
    case Schema::infer:
      return judged_unseen(read_infer_case(row, names), row, names);
    case Schema::memory:
      return judged_unseen(read_memory_case(row, names), row, names);
    case Schema::ops:
      return timed(read_ops_case(row, names), row, names);
    case Schema::comm:
      return timed(read_comm_case(row, names), row, names);
    case Schema::matmul:
      return timed(read_matmul_case(row, names), row, names);
    case Schema::serving:
    case Schema::run:
      break;
  }
  return Refusal{RefusalReason::schema_not_supported, schema_name(schema)};
}

}  // namespace trigon
