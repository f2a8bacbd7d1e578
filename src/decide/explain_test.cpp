// What --explain shows of the operators adds up to the times that are shown, for every kind of
// model and job.

#include <gtest/gtest.h>

#include <cmath>

#include "decide/test_questions.hpp"
#include "library/library.hpp"

namespace trigon {
namespace {

struct Case {
  const char* model;
  const char* hardware;
  JobKind kind;
  const char* engine;
};

class Explained : public ::testing::TestWithParam<Case> {};

// The metric that a part states; a batch of whole items is told under several names.
std::optional<Metric> stated(StepPart part) {
  switch (part) {
    case StepPart::prefill:
      return Metric::prefill_seconds;
    case StepPart::decode:
      return Metric::decode_step_seconds;
    case StepPart::train_step:
      return Metric::step_seconds;
    case StepPart::item_batch:
      return std::nullopt;
  }
  return std::nullopt;
}

TEST_P(Explained, OperatorsAndRestAddUp) {
  const Catalogues& all = test::catalogues();
  const Case& c = GetParam();
  auto model = named_model(c.model, all.models, all.networks);
  ASSERT_TRUE(model);
  Question q = test::question(*model, c.kind);
  q.explain = true;
  q.engine = c.engine;
  if (c.kind == JobKind::train && model->item) q.job.samples = 1e6;
  if (c.kind == JobKind::train && !model->item) q.job.tokens = 1e9;
  auto a = estimate(all, q, test::machine(c.hardware));
  ASSERT_TRUE(a);
  const PlanReport& r = a->report;
  ASSERT_FALSE(r.steps.empty());
  for (const StepBreakdown& s : r.steps) {
    double sum = 0, other = 0, host = 0;
    for (const OperatorLine& line : s.operators) {
      sum += line.seconds;
      EXPECT_GE(line.seconds, 0) << line.op.name;
      EXPECT_GT(line.time.seconds, 0) << line.op.name;
    }
    for (const RestLine& line : s.rest) {
      sum += line.seconds;
      if (line.what == StepRest::other) other = line.seconds;
      if (line.what == StepRest::host_floor) host = line.seconds;
    }
    EXPECT_NEAR(sum / s.seconds, 1, 1e-9);
    EXPECT_LT(std::abs(other), 1e-3 * s.seconds) << "time that no line explains";
    EXPECT_GE(host, 0);
    if (auto m = stated(s.part)) {
      EXPECT_NEAR(r[*m]->value / s.seconds, 1, 1e-9) << metric_info(*m).json;
    }
  }
  if (r.steps.back().part == StepPart::item_batch && c.kind == JobKind::batch) {
    EXPECT_NEAR(r[Metric::e2e_seconds]->value / r.steps.back().seconds, 1, 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Explained,
    ::testing::Values(Case{"llama-3.1-8b", "h100-sxm", JobKind::serve, "vllm"},
                      Case{"llama-3.1-8b", "2xrtx-4090", JobKind::serve, "llama.cpp"},
                      Case{"mixtral-8x7b", "4xh100-sxm", JobKind::batch, "sglang"},
                      Case{"deepseek-v3", "8xh200-sxm", JobKind::serve, "vllm"},
                      Case{"qwen2.5-7b", "a100-sxm-80gb", JobKind::batch, "transformers"},
                      Case{"bert-large", "a100-sxm-80gb", JobKind::batch, ""},
                      Case{"bert-large", "v100-sxm-32gb", JobKind::train, ""},
                      Case{"llama-2-7b", "8xa100-sxm-80gb", JobKind::train, ""},
                      Case{"resnet50", "a100-sxm-80gb", JobKind::batch, ""},
                      Case{"resnet50", "rtx-4090", JobKind::serve, ""},
                      Case{"resnet50", "8xa100-sxm-80gb", JobKind::train, ""},
                      Case{"sdxl", "rtx-4090", JobKind::batch, ""},
                      Case{"whisper-large-v3", "rtx-4070", JobKind::batch, ""}));

}  // namespace
}  // namespace trigon
