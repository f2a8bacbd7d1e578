// Every card is marked, also those that cannot run the model at all.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "decide/test_questions.hpp"

namespace trigon {
namespace {

using test::catalogues;

TEST(Fit, AHostThatIsTooSmallForWhatIsOffloadedIsANo) {
  auto model = catalogues().models.find("llama-2-7b");
  ASSERT_TRUE(model);
  Question q;
  q.model = &*model;
  q.engine = "deepspeed";
  q.job.kind = JobKind::finetune;
  q.job.method = TuneMethod::full;
  q.plan.offload_optimizer = q.plan.offload_weights = true;
  Cluster machine = test::machine("rtx-4090");
  auto unknown = fit(catalogues(), q, machine);
  ASSERT_TRUE(unknown);
  EXPECT_NE(unknown->rows.front().mark, FitMark::no);
  // 6.74e9 parameters at 18 bytes are 113 GiB.
  machine.host.memory = gibibytes(112);
  auto small = fit(catalogues(), q, machine);
  ASSERT_TRUE(small);
  EXPECT_EQ(small->rows.front().mark, FitMark::no);
  EXPECT_TRUE(small->rows.front().binding);
  machine.host.memory = gibibytes(114);
  auto enough = fit(catalogues(), q, machine);
  ASSERT_TRUE(enough);
  EXPECT_NE(enough->rows.front().mark, FitMark::no);
}

TEST(Fit, EveryCardIsMarkedAndEachNoHasItsReason) {
  auto model = catalogues().models.find("llama-3.1-8b");
  ASSERT_TRUE(model);
  Question q;
  q.model = &*model;
  q.job.kind = JobKind::serve;
  q.job.context = 8192;
  auto a = fit_everywhere(catalogues(), q);
  ASSERT_TRUE(a);
  std::set<std::string> seen;
  int fits = 0, no = 0, unable = 0;
  for (const FitRow& r : a->rows) {
    seen.insert(r.report.cluster.accelerator->id);
    (r.mark == FitMark::no ? no : fits) += 1;
    EXPECT_EQ(r.mark == FitMark::no, r.binding.has_value()) << r.report.cluster.accelerator->id;
    unable += !r.report[Metric::memory_bytes];
  }
  std::size_t cards = 0;  // processors are answered for when they are named
  for (const Accelerator& card : catalogues().hardware.accelerators.all())
    cards += card.kind != DeviceKind::cpu;
  EXPECT_EQ(seen.size(), cards);
  EXPECT_EQ(seen.size(), a->rows.size());
  EXPECT_GT(fits, 50);
  EXPECT_GT(no, 50);
  EXPECT_GT(unable, 0);
}

TEST(Fit, WhatNoCardCanRunIsAnError) {
  auto model = catalogues().models.find("llama-3.1-8b");
  ASSERT_TRUE(model);
  Question q;
  q.model = &*model;
  q.job.kind = JobKind::train;  // an engine that only serves
  q.job.tokens = 1e9;
  q.engine = "vllm";
  auto a = fit_everywhere(catalogues(), q);
  ASSERT_FALSE(a);
  EXPECT_EQ(a.error().code, ErrorCode::unsupported);
}

// vLLM takes its fraction of the whole card, whoever else uses it: 23.5 GiB, of them 8 in use,
// leave 15.5, less than 0.92 of the whole. Half of it, 11.8 GiB, is there, whether others use 1
// or 8.
TEST(Fit, AFractionOfTheTotalMustBeFree) {
  auto model = catalogues().models.find("llama-3.2-1b");
  ASSERT_TRUE(model);
  Question q = test::question(*model, JobKind::serve);
  q.engine = "vllm@0.11";
  const auto usable = [](const FitAnswer& a) {
    return a.rows.front().report[Metric::usable_bytes]->value;
  };
  // The engine's own fraction is lowered, said so; a stated one is refused.
  const auto lowered = fit(catalogues(), q, test::machine("rtx-4090{used=8GiB}"));
  ASSERT_TRUE(lowered);
  EXPECT_LE(usable(*lowered), 16.5 * kGi);
  EXPECT_TRUE(std::any_of(lowered->assumptions.begin(), lowered->assumptions.end(),
                          [](const Assumption& a) { return a.input == "--memory-fraction"; }));
  q.plan.memory_fraction = 0.92;
  const auto refused = fit(catalogues(), q, test::machine("rtx-4090{used=8GiB}"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "--memory-fraction");
  q.plan.memory_fraction = 0.5;
  const auto few = fit(catalogues(), q, test::machine("rtx-4090{used=1GiB}"));
  const auto many = fit(catalogues(), q, test::machine("rtx-4090{used=8GiB}"));
  ASSERT_TRUE(few && many);
  EXPECT_NEAR(usable(*few), usable(*many), 1e6);
  // Earlier releases count the memory of others inside the fraction.
  q.engine = "vllm@0.6.3";
  const auto before = fit(catalogues(), q, test::machine("rtx-4090{used=8GiB}"));
  ASSERT_TRUE(before);
  EXPECT_LT(usable(*before), usable(*many) - 7 * kGi);
}

}  // namespace
}  // namespace trigon
