#include "present/words.hpp"

#include <gtest/gtest.h>

#include <set>

#include "hardware/messages.hpp"
#include "present/app_messages.hpp"
#include "present/translation.hpp"

namespace trigon {
namespace {

// The numbers in braces; -1 for anything else between braces.
std::set<int> placeholders(std::string_view text) {
  std::set<int> out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') continue;
    std::size_t close = text.find('}', i);
    if (close == text.npos) return {-1};
    std::string inside(text.substr(i + 1, close - i - 1));
    if (inside.empty() || inside.find_first_not_of("0123456789") != inside.npos) return {-1};
    out.insert(std::stoi(inside));
  }
  return out;
}

TEST(Words, PlaceholdersOfEveryMessageAreConsecutive) {
  ASSERT_GT(all_messages().size(), 100u);
  for (const MessageEntry& e : all_messages()) {
    int expected = 0;
    for (int n : placeholders(e.english)) EXPECT_EQ(n, expected++) << message_name(e.id);
  }
}

TEST(Words, NamesOfMessagesAreUnique) {
  std::set<std::string> seen;
  for (const MessageEntry& e : all_messages())
    EXPECT_TRUE(seen.insert(message_name(e.id)).second) << message_name(e.id);
}

TEST(Words, ChineseCoversEveryMessageWithTheSamePlaceholders) {
  auto entries = parse_po(chinese_po());
  for (const MessageEntry& e : all_messages()) {
    auto found = entries.find(message_name(e.id));
    if (found == entries.end()) {
      ADD_FAILURE() << message_name(e.id) << " has no Chinese: tools/update_po.py --missing";
      continue;
    }
    EXPECT_EQ(found->second.original, e.english) << message_name(e.id) << " changed";
    EXPECT_EQ(placeholders(found->second.translated), placeholders(e.english))
        << message_name(e.id);
  }
}

TEST(Words, ArgumentsTakeTheUnitOfTheirType) {
  Message m = message(BaseMessage::file_too_large, gibibytes(2.5), megabytes(100));
  EXPECT_EQ(render(m, Language::english), "the file has 2.5 GiB; at most 95.4 MiB are read");
  EXPECT_EQ(message_name(m.id), "base.file_too_large");
}

TEST(Words, ControlBytesOfArgumentsAreNotPrinted) {
  Message m = message(BaseMessage::bad_number, "\x1b[31mred\x07");
  EXPECT_EQ(render(m, Language::english), "'\\x1b[31mred\\x07' is not a number that fits here");
}

TEST(Words, AMissingArgumentShows) {
  EXPECT_EQ(render(message(BaseMessage::bad_number), Language::english),
            "'?' is not a number that fits here");
}

TEST(Words, AnErrorNamesItsPlaceAndRemedy) {
  Error e{ErrorCode::bad_argument, message(BaseMessage::missing_unit, "80"), "--disk",
          message(BaseMessage::write_one_of, "80GB or 80GiB")};
  EXPECT_EQ(render_error(e, Language::english),
            "'80' needs a unit (--disk)\n  hint: write 80GB or 80GiB");
}

TEST(Translation, ReadsEscapesContinuedLinesAndSkipsFuzzyEntries) {
  auto entries = parse_po(
      "msgid \"\"\nmsgstr \"Language: x\\n\"\n\n"
      "# a note\nmsgctxt \"a.b\"\nmsgid \"say \\\"x\\\"\"\nmsgstr \"\"\n\"one \"\n\"two\\n\"\n\n"
      "#, fuzzy\nmsgctxt \"a.c\"\nmsgid \"old\"\nmsgstr \"alt\"\n\n"
      "msgctxt \"a.d\"\nmsgid \"empty\"\nmsgstr \"\"");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries["a.b"].original, "say \"x\"");
  EXPECT_EQ(entries["a.b"].translated, "one two\n");
}

}  // namespace
}  // namespace trigon
