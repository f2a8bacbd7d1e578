// The renderers on answers made by hand: order, units, exit-relevant verdicts.

#include "present/reports.hpp"

#include <gtest/gtest.h>

#include "present/page.hpp"

namespace trigon {
namespace {

struct World {
  Accelerator a, b;
  World() {
    a.id = "big-80gb";
    b.id = "small-24gb";
  }
};

Estimate<double> about(double v) { return {v, v * 0.9, v * 1.2, Basis::analytic}; }

PlanReport report(const Accelerator& card, double speed, double need, double usable) {
  PlanReport r;
  r.cluster.accelerator = &card;
  r.engine = "vllm 0.11";
  r.metrics[static_cast<std::size_t>(Metric::memory_bytes)] = about(gibibytes(need).in_base());
  r.metrics[static_cast<std::size_t>(Metric::usable_bytes)] = exactly(gibibytes(usable).in_base());
  r.metrics[static_cast<std::size_t>(Metric::headroom_bytes)] =
      exactly(gibibytes(usable - need).in_base());
  r.metrics[static_cast<std::size_t>(Metric::decode_tokens_per_second_user)] = about(speed);
  r.metrics[static_cast<std::size_t>(Metric::output_tokens_per_second)] = about(speed * 8);
  r.metrics[static_cast<std::size_t>(Metric::usd_per_hour)] = about(speed / 40);
  r.memory[MemoryTerm::weights] = gibibytes(need * 0.75).in_base();
  r.memory[MemoryTerm::kv_cache] = gibibytes(need * 0.25).in_base();
  r.fits = need < usable;
  r.meets_limits = r.fits;
  return r;
}

Job serve_job() {
  Serve s;
  s.concurrency = 8;
  s.input_tokens = 1000;
  s.output_tokens = 300;
  return s;
}

Asked asked(const char* command) {
  Asked a;
  a.command = command;
  a.model = "llama";
  a.data_version = "2025";
  return a;
}

// Whether the parts follow each other, however lines are broken.
bool in_order(std::string text, std::initializer_list<const char*> parts) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  std::size_t at = 0;
  for (const char* p : parts) {
    at = text.find(p, at);
    if (at == text.npos) return false;
  }
  return true;
}

TEST(Reports, EveryMetricAndMemoryTermHasALabel) {
  for (std::size_t i = 0; i < kMetrics; ++i) {
    Metric m = static_cast<Metric>(i);
    EXPECT_NE(metric_label(m, Language::english), metric_info(m).json);
  }
}

TEST(Reports, FitSaysTheVerdictFirstThenNumbersThenMemory) {
  World w;
  FitAnswer a{serve_job(), {{report(w.a, 80, 20, 75), FitMark::fits, std::nullopt}}, {}, {}, {}};
  TextStyle style;
  std::string text = fit_text(a, asked("fit"), style);
  EXPECT_TRUE(in_order(text, {"Yes: serving llama (8 in flight, 1,000 input and 300 output tokens) "
                              "fits",
                              "big-80gb", "memory needed", "20 GiB (18 to 24)", "speed per user",
                              "Memory of the fullest card, GiB", "weights", "15.0", "75"}))
      << text;
  EXPECT_TRUE(is_yes(a));
  a.rows[0].mark = FitMark::no;
  EXPECT_FALSE(is_yes(a));
  style.one_line = true;
  text = fit_text(a, asked("fit"), style);
  EXPECT_EQ(text.find("Memory of"), text.npos);
}

TEST(Reports, FitEverywhereMarksEveryCardInWords) {
  World w;
  FitAnswer a{serve_job(),
              {{report(w.a, 80, 20, 75), FitMark::fits, std::nullopt},
               {report(w.b, 30, 20, 19), FitMark::no, std::nullopt}},
              {},
              {},
              {}};
  std::string text = fit_text(a, asked("fit"), TextStyle());
  EXPECT_TRUE(
      in_order(text, {"fits 1 of 2 cards", "needs GiB", "big-80gb", "fits", "small-24gb", "no"}))
      << text;
}

TEST(Reports, RecommendNamesWinnerRunnerUpAndReason) {
  World w;
  RecommendAnswer a;
  a.job = serve_job();
  a.ranked.push_back({report(w.a, 80, 20, 75), {}, {}});
  a.ranked.push_back({report(w.b, 30, 10, 23), {}, {message(BaseMessage::bad_syntax, "x", "y")}});
  a.rejected.push_back({"tiny-8gb", message(BaseMessage::missing_fact, "price", "tiny-8gb"), {}});
  a.counts.cards = 3;
  std::string text = recommend_text(a, asked("recommend"), TextStyle());
  EXPECT_TRUE(in_order(text, {"Choose big-80gb", "Runner-up: small-24gb", "Why it lost:", "Ranked",
                              "1", "big-80gb", "2", "small-24gb", "Rejected", "tiny-8gb"}))
      << text;
  TextStyle style;
  style.why_not = "tiny-8gb";
  text = recommend_text(a, asked("recommend"), style);
  EXPECT_NE(text.find("tiny-8gb is rejected"), text.npos) << text;
  a.ranked.clear();
  EXPECT_FALSE(is_yes(a));
  EXPECT_EQ(recommend_text(a, asked("recommend"), TextStyle()).find("No hardware"), 0u);
}

TEST(Reports, CompareSaysWhoIsAheadByHowMuch) {
  World w;
  CompareAnswer a;
  a.job = serve_job();
  a.rows.push_back({report(w.b, 30, 10, 23), message(BaseMessage::missing_key, "k"), 1});
  a.rows.push_back({report(w.a, 60, 20, 75), message(BaseMessage::missing_key, "k"), 2});
  std::string text = compare_text(a, asked("compare"), TextStyle());
  EXPECT_TRUE(in_order(
      text, {"big-80gb is ahead on output speed: 480 tokens/s (432 to 576)", "small-24gb is 0.5x"}))
      << text;
}

TEST(Reports, JsonHasItsFrameAndUnitsInNames) {
  World w;
  FitAnswer a{serve_job(), {{report(w.a, 80, 20, 75), FitMark::fits, std::nullopt}}, {}, {}, {}};
  std::string text = write_json(fit_json(a, asked("fit")));
  EXPECT_TRUE(
      in_order(text, {"\"schema_version\": 1", "\"command\": \"fit\"", "\"inputs\"",
                      "\"input_tokens\": 1000", "\"results\"", "\"memory_bytes\"",
                      "\"value\": 21474836500", "\"warnings\"", "\"data_version\": \"2025\""}))
      << text;
}

TEST(Reports, DerivationsSubstituteNumbersForWholeNamesOnly) {
  static const Formula f{"memory.kv_cache", "2 * layers * kv_heads * heads"};
  DerivationStep step{&f, 512, "B", "rank 0", {{"layers", 32, "", ""}, {"heads", 8, "", ""}}};
  EXPECT_EQ(substituted(step), "2 * 32 * kv_heads * 8");
  Derivation d{{step}};
  TextStyle style;
  style.explain_term = "kv_cache";
  Page page(style);
  put_derivation(page, d);
  EXPECT_TRUE(
      in_order(page.finish(), {"memory.kv_cache [rank 0]", "= 2 * layers", "= 2 * 32", "= 512 B"}));
}

}  // namespace
}  // namespace trigon
