// The same question gives the same bytes, whatever the threads and however often it is asked.

#include <gtest/gtest.h>

#include "present/reports.hpp"
#include "random_questions.hpp"

namespace trigon {
namespace {

std::string answer(const Question& q, Objective o, int threads) {
  o.threads = threads;
  auto a = recommend(test::catalogues(), q, o);
  EXPECT_TRUE(a.has_value());
  if (!a) return "";
  return write_json(recommend_json(*a, {}));
}

TEST(Recommendations, AreTheSameForAnyNumberOfThreads) {
  Model dense = test::llama31_8b(), sparse = test::mixtral_8x7b();
  Question serve = test::serving(dense, 5, 700, 200);
  serve.job.limits.tpot = LatencyLimit{milliseconds(50), 95};
  Objective o;
  o.max_gpus = 8;
  std::string once = answer(serve, o, 1);
  EXPECT_GT(once.size(), 10000u);
  for (int threads : {2, 3, 7}) EXPECT_EQ(answer(serve, o, threads), once) << threads;
  EXPECT_EQ(answer(serve, o, 0), once);
  o.vendors = {"amd", "intel"};
  Question train = test::training(sparse, 1e9, 64);
  once = answer(train, o, 1);
  for (int threads : {1, 4}) EXPECT_EQ(answer(train, o, threads), once) << threads;
}

TEST(Recommendations, EstimatesRepeat) {
  EXPECT_TRUE(rc::check("same bytes", [] {
    Model model = test::any_model();
    Cluster machine = test::any_machine(test::any_card());
    Question q = test::any_question(model);
    q.explain = true;
    auto a = estimate_best(test::catalogues(), q, machine);
    auto b = estimate_best(test::catalogues(), q, machine);
    RC_ASSERT(a.has_value() == b.has_value());
    RC_PRE(a.has_value());
    RC_ASSERT(write_json(estimate_json(*a, {})) == write_json(estimate_json(*b, {})));
  }));
}

}  // namespace
}  // namespace trigon
