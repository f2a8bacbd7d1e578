#include "evidence/csv.hpp"

#include <gtest/gtest.h>

#include "evidence/messages.hpp"

namespace trigon {
namespace {

TEST(Csv, ReadsQuotedFieldsLineBreaksAndBothLineEnds) {
  const auto table = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n1,\"x,\"\"y\"\"\nz\"\n,\r\n3,4",
      "t.csv");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->columns, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(table->rows.size(), 3u);
  EXPECT_EQ(table->rows[0].fields[1], "x,\"y\"\nz");
  EXPECT_EQ(table->rows[0].line, 2u);
  EXPECT_EQ(table->rows[1].line, 4u);
  EXPECT_EQ(table->rows[1].fields[0], "");
  EXPECT_EQ(table->where(table->rows[2]), "t.csv:5");
  EXPECT_EQ(table->rows[2].fields[1], "4");
}

TEST(Csv, SkipsEmptyLinesOnlyInTablesOfSeveralColumns) {
  EXPECT_EQ(parse_csv("a,b\n\n1,2\n\n", "t")->rows.size(), 1u);
  EXPECT_EQ(parse_csv("a\n\n1\n", "t")->rows.size(), 2u);
}

struct Malformed {
  const char* name;
  std::string text;
  EvidenceMessage what;
  const char* where;
};

class CsvMalformed : public testing::TestWithParam<Malformed> {};

TEST_P(CsvMalformed, IsRefusedWithItsLine) {
  const auto table = parse_csv(GetParam().text, "t.csv");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::malformed);
  EXPECT_EQ(table.error().what.id, message_id(GetParam().what));
  EXPECT_EQ(table.error().where, GetParam().where);
}

INSTANTIATE_TEST_SUITE_P(
    Csv, CsvMalformed,
    testing::Values(
        Malformed{"empty", "", EvidenceMessage::csv_no_header, "t.csv:1"},
        Malformed{"ragged_short", "a,b\n1\n", EvidenceMessage::csv_ragged, "t.csv:2"},
        Malformed{"ragged_long", "a,b\n1,2\n1,2,3\n", EvidenceMessage::csv_ragged, "t.csv:3"},
        Malformed{"open_quote", "a,b\n1,\"x\n\n", EvidenceMessage::csv_open_quote, "t.csv:2"},
        Malformed{"stray_quote", "a,b\n1,x\"y\n", EvidenceMessage::csv_stray_quote, "t.csv:2"},
        Malformed{"after_quote", "a,b\n\"1\"x,2\n", EvidenceMessage::csv_after_quote, "t.csv:2"},
        Malformed{"nul", std::string("a,b\n1,\0\n", 8), EvidenceMessage::csv_control_byte,
                  "t.csv:2"},
        Malformed{"escape", "a,b\n1,\x1b[2J\n", EvidenceMessage::csv_control_byte, "t.csv:2"},
        Malformed{"lone_return", "a,b\n1,x\ry\n", EvidenceMessage::csv_control_byte, "t.csv:2"},
        Malformed{"not_utf8", "a,b\n1,\xff\n", EvidenceMessage::csv_bad_utf8, "t.csv:2"},
        Malformed{"overlong", "a,b\n1,\xc0\x80\n", EvidenceMessage::csv_bad_utf8, "t.csv:2"},
        Malformed{"surrogate", "a,b\n1,\xed\xa0\x80\n", EvidenceMessage::csv_bad_utf8, "t.csv:2"},
        Malformed{"unnamed", "a,,c\n1,2,3\n", EvidenceMessage::csv_unnamed_column, "t.csv:1"},
        Malformed{"repeated", "a,b,a\n1,2,3\n", EvidenceMessage::csv_repeated_column, "t.csv:1"},
        Malformed{"many_columns", std::string(600, ','), EvidenceMessage::csv_too_many_columns,
                  "t.csv:1"},
        Malformed{"long_field", "a,b\n1," + std::string(kCsvMaxField + 1, 'x') + "\n",
                  EvidenceMessage::csv_field_too_long, "t.csv:2"}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(Csv, WrittenFieldsReadBack) {
  for (const std::string text : {"plain", "a,b", "say \"x\"", "two\nlines", ""}) {
    const auto table = parse_csv("a,b\n" + csv_field(text) + ",1\n", "t");
    ASSERT_TRUE(table);
    EXPECT_EQ(table->rows[0].fields[0], text);
  }
}

TEST(Csv, MissingFileIsUnreadable) {
  const auto table = read_csv("/nonexistent/rows.csv");
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::unreadable);
}

}  // namespace
}  // namespace trigon
