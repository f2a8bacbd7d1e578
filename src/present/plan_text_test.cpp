// The answer of `plan` in words, on answers made by hand.

#include <gtest/gtest.h>

#include "present/page.hpp"
#include "present/reports.hpp"

namespace trigon {
namespace {

struct Made {
  Accelerator card;
  PlanAnswer answer;
  Asked asked;

  Made() {
    card.id = "big-80gb";
    Train job;
    job.tokens = 1e9;
    job.sequence = 2048;
    job.global_batch = 64;
    answer.job = job;
    asked.model = "llama";
    PlanReport r;
    r.cluster.accelerator = &card;
    r.engine = "megatron-lm";
    r.plan.tensor = 2;
    r.plan.data = 4;
    r.metrics[static_cast<std::size_t>(Metric::step_seconds)] =
        Estimate<double>{3, 2, 4, Basis::analytic};
    answer.best = std::move(r);
    answer.plans = 1234;
  }
  PlanRow row(Plan plan, double seconds) const {
    PlanRow r;
    r.plan = plan;
    r.seconds = r.wish = seconds;
    r.memory_bytes = 40e9;
    r.usable_bytes = 80e9;
    return r;
  }
  std::string text(bool one_line = false) const {
    TextStyle style;
    style.one_line = one_line;
    std::string out = plan_text(answer, asked, style);
    for (char& c : out)
      if (c == '\n') c = ' ';
    return out;
  }
};

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

TEST(PlanText, TheHeadNamesThePlanItsMicroBatchAndTheSpace) {
  const std::string text = Made().text(true);
  EXPECT_TRUE(has(text, "tp2 dp4 mb1")) << text;
  EXPECT_TRUE(has(text, "1,234")) << text;
}

TEST(PlanText, EveryKindOfPlanHasAName) {
  Made m;
  auto add = [&](FamilyKind kind, std::int32_t value) {
    PlanFamilyRow f{{kind, value}, m.row({}, 6), std::nullopt, 2};
    m.answer.families.push_back(f);
  };
  for (std::int32_t v : {0, 1, 2, 3, 4}) add(FamilyKind::pipeline, v);
  for (std::int32_t v : {0, 1, 2}) add(FamilyKind::context, v);
  for (std::int32_t v : {0, 1}) add(FamilyKind::groups, v);
  add(FamilyKind::offload, 3);
  const std::string text = m.text();
  for (const char* name : {"no pipeline", "interleaved pipeline", "GPipe", "zero bubble", "ring",
                           "all-to-all", "HSDP", "offloaded: optimizer, weights"})
    EXPECT_TRUE(has(text, name)) << name << "\n" << text;
  EXPECT_FALSE(has(text, "?"));
}

TEST(PlanText, AnInterruptedSearchSaysSo) {
  Made m;
  const std::string whole = m.text();
  m.answer.partial = true;
  EXPECT_NE(m.text(), whole);
  m.answer.best.reset();
  EXPECT_FALSE(is_yes(m.answer));
  EXPECT_FALSE(has(m.text(), "tp2"));
}

TEST(PlanText, MethodsThatDoNotFitSayWhy) {
  Made m;
  MethodRow full{TuneMethod::full, m.row({}, 5), std::nullopt};
  full.best->violated.push_back(message(PresentMessage::col_memory));
  MethodRow lora{TuneMethod::lora, m.row({}, 4), std::nullopt};
  m.answer.methods = {full, lora};
  const std::string text = m.text();
  EXPECT_TRUE(has(text, "every weight: ")) << text;
  EXPECT_FALSE(has(text, "LoRA: ")) << text;
}

}  // namespace
}  // namespace trigon
