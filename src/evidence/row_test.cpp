#include "evidence/row.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "evidence/fake_names_test.hpp"
#include "evidence/messages.hpp"

namespace trigon {
namespace {

TEST(Row, ReadsColumnsThenKeysInNotesButNeverProse) {
  const CsvTable t = table_of(
      "id,tp,pp,value,notes\n"
      "x,4,,12.5,\"ran on pp 8 machines; pipeline-model-parallel-size=2; fa=1 tp=9\"\n");
  const Row row(t, t.rows[0]);
  EXPECT_EQ(row.whole("tp"), 4);
  EXPECT_EQ(row.whole("pp", {"pipeline-model-parallel-size"}), 2);
  EXPECT_FALSE(row.whole("pp"));
  EXPECT_EQ(row.text("fa"), "1");
  EXPECT_FALSE(row.whole("value"));
  EXPECT_EQ(row.number("value"), 12.5);
  EXPECT_TRUE(row.text("absent").empty());
}

TEST(Row, NumbersAreWholeFieldsAndFinite) {
  const CsvTable t = table_of("id,a,b,c,d\nx,inf,\"1,024\",12abc,1e400\n");
  const Row row(t, t.rows[0]);
  for (const char* column : {"a", "b", "c", "d"}) EXPECT_FALSE(row.number(column)) << column;
}

TEST(Row, RepositoryIsOwnerAndName) {
  const CsvTable t =
      table_of("id,source\n1,github:a/b c/d.md:L3@42\n2,github:a/b@42:x.md\n3,arXiv 2205.1\n4,\n");
  const char* expected[] = {"a/b", "a/b", "arXiv", ""};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(Row(t, t.rows[i]).repository(), expected[i]);
}

TEST(Row, RoundsOfOneBenchmarkShareAFold) {
  const CsvTable t = table_of(
      "id,source,gpu,model\n"
      "1,github:mlcommons/results_v4@1,H100,llama2-70b\n"
      "2,github:mlcommons/results_v5@2,h100,Llama-3-8B\n");
  EXPECT_EQ(Row(t, t.rows[0]).fold(), Row(t, t.rows[1]).fold());
}

TEST(Row, CommittedFoldsAreThoseOfTheSameHash) {
  // The script that writes the evidence and this reader must agree on the folds.
  for (const char* name : {"train", "infer", "memory"}) {
    auto t = read_csv(std::filesystem::path(TRIGON_SOURCE_DIR) / "data" / "measured" /
                      (std::string(name) + ".csv"));
    ASSERT_TRUE(t) << name;
    const auto fold = t->column("fold");
    ASSERT_TRUE(fold) << name;
    for (CsvRow& r : t->rows) {
      const std::string written = r.fields[*fold];
      r.fields[*fold].clear();
      ASSERT_EQ(std::to_string(Row(*t, r).fold()), written) << t->where(r);
    }
  }
}

TEST(Schemas, AreKnownByTheirColumns) {
  for (const char* name : {"train", "infer", "memory", "comm", "matmul"}) {
    const auto t = read_csv(std::filesystem::path(TRIGON_SOURCE_DIR) / "data" / "measured" /
                            (std::string(name) + ".csv"));
    ASSERT_TRUE(t) << name;
    EXPECT_STREQ(schema_name(*detect_schema(*t)), name);
  }
  const auto none = detect_schema(table_of("a,b\n1,2\n"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what.id, message_id(EvidenceMessage::unknown_schema));
}

}  // namespace
}  // namespace trigon
