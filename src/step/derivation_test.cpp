// Every number a derivation of a step shows follows from the numbers beside it.

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <string>

#include "step/formulas.hpp"
#include "step/test_tables.hpp"

namespace trigon {
namespace {

// Sums, products, parentheses and max(a, b) over the symbols of a step.
class Expression {
 public:
  explicit Expression(const DerivationStep& s) : step_(s), text_(s.formula->expression) {}
  double value() {
    double v = sum();
    EXPECT_EQ(at_, text_.size()) << text_;
    return v;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    skip();
    return true;
  }
  double sum() {
    double v = product();
    while (true) {
      if (take('+'))
        v += product();
      else if (take('-'))
        v -= product();
      else
        return v;
    }
  }
  double product() {
    double v = atom();
    while (true) {
      if (take('*'))
        v *= atom();
      else if (take('/'))
        v /= atom();
      else
        return v;
    }
  }
  double atom() {
    skip();
    if (take('(')) {
      double v = sum();
      EXPECT_TRUE(take(')')) << text_;
      return v;
    }
    std::size_t from = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    std::string word = text_.substr(from, at_ - from);
    if (word == "exp") {
      EXPECT_TRUE(take('('));
      const double x = sum();
      EXPECT_TRUE(take(')'));
      return std::exp(x);
    }
    if (word == "max") {
      EXPECT_TRUE(take('('));
      double a = sum();
      EXPECT_TRUE(take(','));
      double b = sum();
      EXPECT_TRUE(take(')'));
      return std::max(a, b);
    }
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0]))) return std::stod(word);
    for (const Symbol& s : step_.symbols)
      if (word == s.name) return s.value;
    ADD_FAILURE() << step_.formula->name << ": no symbol " << word;
    return 0;
  }
  const DerivationStep& step_;
  std::string text_;
  std::size_t at_ = 0;
};

void check(const Job& job, const Plan& plan, std::vector<std::string> expected) {
  static const FactStore store = test::neutral_calibration();
  static const Calibration calibration = *Calibration::load(store);
  static const Accelerator card = test::round_card();
  Model model = test::mixtral_8x7b();
  PlanDomain domain;
  domain.tensor = {plan.tensor};
  domain.micro_batch = {plan.micro_batch};
  auto t = prepare(model, job, test::round_cluster(card, 8), test::plain_engine(), calibration,
                   test::exactly_gib(80), domain);
  ASSERT_TRUE(t);
  Record heard;
  evaluate(*t, plan, heard);
  for (const DerivationStep& s : heard.derivation.steps) {
    std::string name = s.formula->name;
    EXPECT_NEAR(Expression(s).value() / (s.value == 0 ? 1 : s.value), s.value == 0 ? 0 : 1, 1e-5)
        << name << " = " << s.formula->expression;
    std::erase(expected, name);
  }
  EXPECT_TRUE(expected.empty()) << "never recorded: " << expected.front();
}

TEST(StepDerivation, Serving) {
  Serve s = test::serve(1000, 100);
  s.concurrency.reset();
  s.rate = PerSecond::base(2);
  Plan plan;
  plan.tensor = 4;
  plan.pipeline = 2;
  check(s, plan,
        {"serving.prefill", "serving.decode_step", "serving.steady_state", "serving.tpot",
         "serving.wait", "serving.ttft"});
  check(test::serve(1000, 100), plan, {"serving.tpot", "serving.ttft"});
}

TEST(StepDerivation, Batches) {
  Batch b;
  b.input_tokens = b.output_tokens = 100;
  Plan plan;
  plan.tensor = 4;
  plan.micro_batch = 8;
  check(b, plan, {"serving.prefill", "serving.decode_step", "serving.fixed_batch"});
}

TEST(StepDerivation, Training) {
  Train job;
  job.tokens = 1e9;
  job.sequence = 2048;
  job.global_batch = 64;
  Plan plan;
  plan.tensor = 2;
  plan.pipeline = 2;
  plan.data = 2;
  plan.zero = 1;
  plan.accumulation = 32;
  check(job, plan,
        {"training.micro_batch", "training.bubble", "training.gradient_reduction",
         "training.optimizer", "training.step", "training.time_to_train", "training.mfu"});
}

}  // namespace
}  // namespace trigon
