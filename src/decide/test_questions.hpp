#pragma once
// Questions and machines for the tests of this room.

#include "decide/catalogues.hpp"
#include "decide/verbs.hpp"
#include "hardware/parse.hpp"
#include "memory/test_models.hpp"

namespace trigon::test {

inline const Catalogues& catalogues() {
  static const auto all = *Catalogues::load();
  return *all;
}

inline Cluster machine(const char* text) {
  auto c = parse_hardware(text, catalogues().hardware, "test");
  return c ? *c : Cluster{};
}

inline Question question(const Model& model, JobKind kind) {
  Question q;
  q.model = &model;
  q.job.kind = kind;
  return q;
}

inline Question serving(const Model& model, double rate, std::int64_t input, std::int64_t output) {
  Question q = question(model, JobKind::serve);
  q.job.rate = PerSecond::base(rate);
  q.job.input_tokens = input;
  q.job.output_tokens = output;
  return q;
}

inline Question training(const Model& model, double tokens, std::int64_t global_batch) {
  Question q = question(model, JobKind::train);
  q.job.tokens = tokens;
  q.job.sequence = 2048;
  q.job.global_batch = global_batch;
  return q;
}

}  // namespace trigon::test
