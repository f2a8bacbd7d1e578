#include "present/table.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace trigon {
namespace {

TEST(Screen, ControlBytesAndBrokenTextAreWrittenOut) {
  EXPECT_EQ(printable("plain \xc3\xa9 \xe4\xb8\xad"), "plain \xc3\xa9 \xe4\xb8\xad");
  EXPECT_EQ(printable("a\nb\x1b[0m\x7f"), "a\\x0ab\\x1b[0m\\x7f");
  EXPECT_EQ(printable("\xff\xc0\x80"), "\\xff\\xc0\\x80");  // malformed, overlong
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "evil"),
            "\\u202eevil");  // right-to-left override
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");  // C1 introducer
}

TEST(Screen, WidthCountsWideAndCombiningCharacters) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("\xe4\xb8\xad\xe6\x96\x87"), 4);
  EXPECT_EQ(display_width("e\xcc\x81"), 1);
  EXPECT_EQ(truncated("abcdef", 4), "abc~");
  EXPECT_EQ(truncated("\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97", 5), "\xe4\xb8\xad\xe6\x96\x87~");
}

TEST(Screen, WrapsAtSpacesAndBetweenWideCharacters) {
  EXPECT_EQ(wrapped("one two three", 8), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97", 4),
            (std::vector<std::string>{"\xe4\xb8\xad\xe6\x96\x87", "\xe5\xad\x97"}));
  EXPECT_EQ(wrapped("unbreakable", 4), (std::vector<std::string>{"unbreakable"}));
}

Table sample() {
  Table t({{"name", false, 0, 6}, {"size GiB", true}, {"extra", true, 2}, {"note", false, 1}});
  t.row({"alpha", "1.50", "7", "first"});
  t.row({"beta-and-longer", "12.0", "-", "second"});
  return t;
}

TEST(Table, AlignsNumbersToTheRight) {
  TextStyle style;
  EXPECT_EQ(sample().text(style),
            "name             size GiB  extra  note\n"
            "alpha                1.50      7  first\n"
            "beta-and-longer      12.0      -  second\n");
}

TEST(Table, FitsTheWidthAndNamesWhatItHid) {
  TextStyle style;
  for (int width : {24, 30, 40, 60}) {
    style.width = width;
    std::string text = sample().text(style);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(display_width(line), width) << text;
    bool all = text.find("extra  note\n") != text.npos;
    EXPECT_EQ(all, text.find("hidden") == text.npos) << text;
  }
  style.width = 24;
  EXPECT_NE(sample().text(style).find("beta-"), std::string::npos);
}

TEST(Table, SaysHowManyRowsItHid) {
  TextStyle style;
  std::string text = sample().text(style, 0, 1);
  EXPECT_EQ(text.find("beta"), std::string::npos);
  EXPECT_NE(text.find("rows not shown: 1 (--top 0 shows all)"), std::string::npos);
}

TEST(Table, ColourOnlyWhenAsked) {
  Table t({{"answer"}});
  t.row({Cell(std::string("no"), Tone::bad)});
  TextStyle style;
  EXPECT_EQ(t.text(style).find('\x1b'), std::string::npos);
  style.colour = true;
  EXPECT_NE(t.text(style).find("\x1b[31mno\x1b[0m"), std::string::npos);
}

TEST(Table, AColumnHasOneUnit) {
  NumberColumn c("B");
  c.see(gibibytes(40).in_base());
  c.see(mebibytes(512).in_base());
  EXPECT_EQ(c.header("free"), "free GiB");
  EXPECT_EQ(c.cell(gibibytes(40).in_base()), "40.0");
  EXPECT_EQ(c.cell(mebibytes(512).in_base()), "0.500");
  EXPECT_EQ(c.cell(std::nullopt), "-");
}

}  // namespace
}  // namespace trigon
