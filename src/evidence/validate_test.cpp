#include "evidence/validate.hpp"

#include <gtest/gtest.h>

#include "evidence/fake_names_test.hpp"
#include "evidence/messages.hpp"
#include "evidence/thresholds.hpp"

namespace trigon {
namespace {

const char* kHeader =
    "id,source,date,gpu,n_gpus,model,engine,tp,pp,input_len,output_len,batch_or_concurrency,"
    "request_rate,metric,stat,value\n";

std::string line(int id, const char* source, const char* gpu, const char* model, double value) {
  return std::to_string(id) + ",github:" + source + "@1,2024," + gpu + ",1," + model +
         ",e,1,1,100,20,1,,output_tok_s_total,mean," + std::to_string(value) + "\n";
}

// Card A gives 100 tokens/s, card B 400, both between half and twice of that.
Result<EstimateAnswer> predict(const Question&, const Cluster& c, bool) {
  return flat_answer(c.accelerator->id == "card-a" ? 100 : 400);
}

TEST(Validate, GroupsRowsAndMergesSmallGroups) {
  const FakeWorld world;
  std::string text = kHeader;
  for (int i = 0; i < 10; ++i) text += line(i, "o/big", "A", "tiny", 80);
  text += line(10, "o/big", "A", "resnet", 80);
  text += line(11, "o/big", "Z", "tiny", 80);
  for (int i = 12; i < 15; ++i) text += line(i, "o/small", "A", "tiny", 400);
  const auto answer = validate({table_of(text)}, world.names(), predict, {});
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->groups.size(), 2u);
  const ValidateGroup& big = answer->groups[0];
  EXPECT_EQ(big.group, "o/big / output_tok_s_total");
  EXPECT_EQ(big.rows, 12);
  EXPECT_EQ(big.in_scope, 11);
  EXPECT_EQ(big.predicted, 10);
  EXPECT_EQ(big.refused, 1);
  EXPECT_NEAR(*big.errors.median_error, 0.25, 1e-12);
  EXPECT_EQ(*big.errors.inside_interval, 1);
  EXPECT_EQ(answer->groups[1].group, "other");
  EXPECT_EQ(*answer->groups[1].errors.inside_interval, 0);  // 400 is above 50 to 200
  EXPECT_EQ(answer->overall.rows, 15);
  EXPECT_EQ(answer->overall.predicted, 13);
  EXPECT_NEAR(*answer->median_of_group_medians, (0.25 + 0.75) / 2, 1e-12);
  ASSERT_EQ(answer->refusals.size(), 2u);
  EXPECT_EQ(answer->refusals[0].rows, 1);
}

TEST(Validate, RangesSpanAllCardsOfAnAmbiguousName) {
  const FakeWorld world;
  const auto answer = validate({table_of(kHeader + line(1, "o/r", "A or B", "tiny", 100))},
                               world.names(), predict, {});
  ASSERT_TRUE(answer);
  const auto& e = answer->rows[0].predicted;
  ASSERT_TRUE(e);
  EXPECT_DOUBLE_EQ(e->value, 200);  // sqrt(100 * 400)
  EXPECT_DOUBLE_EQ(e->low, 50);
  EXPECT_DOUBLE_EQ(e->high, 800);
}

TEST(Validate, FailedPredictionsAreRefusalsWithTheirError) {
  const FakeWorld world;
  const auto none = [](const Question&, const Cluster&, bool) -> Result<EstimateAnswer> {
    return fail(ErrorCode::missing_fact, message(BaseMessage::missing_fact, "peak", "x"));
  };
  const auto answer =
      validate({table_of(kHeader + line(1, "o/r", "A", "tiny", 1))}, world.names(), none, {});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->rows[0].refusal->reason, RefusalReason::prediction_failed);
  EXPECT_EQ(answer->rows[0].error->code, ErrorCode::missing_fact);
  EXPECT_FALSE(answer->median_of_group_medians);
}

TEST(Validate, EvidenceIsJudgedByCoefficientsThatHaveNotSeenIt) {
  const FakeWorld world;
  RowNames names = world.names();
  static const Calibration without_three;
  names.unseen = [](int fold) { return fold == 3 ? &without_three : nullptr; };
  const auto seen_with = [&](const std::string& header, const std::string& end) {
    const Calibration* used = nullptr;
    const auto note = [&](const Question& q, const Cluster&, bool) -> Result<EstimateAnswer> {
      used = q.calibration;
      return flat_answer(1);
    };
    std::string row = line(1, "o/r", "A", "tiny", 1);
    row.replace(row.size() - 1, 1, end + "\n");
    std::string columns = kHeader;
    columns.replace(columns.size() - 1, 1, header + "\n");
    ValidateOptions one;
    one.threads = 1;
    EXPECT_TRUE(validate({table_of(columns + row)}, names, note, one));
    return used;
  };
  EXPECT_EQ(seen_with(",fold", ",3"), &without_three);
  EXPECT_EQ(seen_with(",fold", ",4"), nullptr);
  EXPECT_EQ(seen_with("", ""), nullptr);  // rows of other files were never fitted on
}

TEST(Validate, AnyNumberOfThreadsGivesTheSame) {
  const FakeWorld world;
  std::string text = kHeader;
  for (int i = 0; i < 300; ++i)
    text += line(i, i % 3 ? "o/x" : "o/y", i % 5 ? "A" : "A or B", "tiny", 1 + i);
  ValidateOptions one, many;
  one.threads = 1;
  many.threads = 7;
  const auto a = validate({table_of(text)}, world.names(), predict, one);
  const auto b = validate({table_of(text)}, world.names(), predict, many);
  ASSERT_TRUE(a && b);
  ASSERT_EQ(a->rows.size(), b->rows.size());
  for (std::size_t i = 0; i < a->rows.size(); ++i) {
    EXPECT_EQ(a->rows[i].predicted->value, b->rows[i].predicted->value);
    EXPECT_EQ(a->rows[i].group, b->rows[i].group);
  }
  EXPECT_EQ(*a->overall.errors.mean_error, *b->overall.errors.mean_error);
}

TEST(Validate, GroupsByAnyColumn) {
  const FakeWorld world;
  std::string text = kHeader;
  for (int i = 0; i < 12; ++i) text += line(i, "o/x", "A", "tiny", 1);
  ValidateOptions by;
  by.group_by = {"gpu", "fold"};
  const CsvTable t = table_of(text);
  const auto answer = validate({t}, world.names(), predict, by);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->groups[0].group, "A / " + std::to_string(Row(t, t.rows[0]).fold()));
  by.group_by = {"colour"};
  const auto bad = validate({t}, world.names(), predict, by);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().what.id, message_id(EvidenceMessage::unknown_group_column));
}

TEST(Thresholds, SayWhatDoesNotHold) {
  const FakeWorld world;
  const auto answer =
      validate({table_of(kHeader + line(1, "o/r", "A", "tiny", 80))}, world.names(), predict, {});
  ASSERT_TRUE(answer);
  const auto sheet = parse_fact_sheet(
      "kind = 'thresholds'\nid = 'validate'\nsource = 's'\ndate = '2026'\n"
      "[[limit]]\nschema = 'infer'\nstatistic = 'median_error'\nat_most = 0.3\n"
      "[[limit]]\nschema = 'infer'\nstatistic = 'median_of_group_medians'\nat_most = 0.2\n"
      "[[limit]]\nschema = 'infer'\nstatistic = 'inside_interval'\nat_least = 0.5\n"
      "[[limit]]\nschema = 'infer'\nstatistic = 'p90_error'\ngroup = 'gone'\nat_most = 1.0\n"
      "[[limit]]\nschema = 'train'\nstatistic = 'median_error'\nat_most = 0.0\n",
      "thresholds.toml");
  ASSERT_TRUE(sheet);
  const auto limits = read_thresholds(*sheet);
  ASSERT_TRUE(limits);
  const auto broken = broken_thresholds(*limits, *answer);
  ASSERT_EQ(broken.size(), 2u);
  EXPECT_EQ(broken[0].id, message_id(EvidenceMessage::above_threshold));
  EXPECT_EQ(broken[1].id, message_id(EvidenceMessage::figure_missing));
}

}  // namespace
}  // namespace trigon
