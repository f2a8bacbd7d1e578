// Every card is marked, also those that cannot run the model at all.

#include <gtest/gtest.h>

#include <set>

#include "decide/test_questions.hpp"

namespace trigon {
namespace {

using test::catalogues;

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
  EXPECT_EQ(seen.size(), catalogues().hardware.accelerators.all().size());
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

}  // namespace
}  // namespace trigon
