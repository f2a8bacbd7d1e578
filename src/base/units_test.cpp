#include "base/units.hpp"

#include <gtest/gtest.h>

#include <random>

namespace trigon {
namespace {

std::string hint_of(const Error& e) {
  return e.hint && !e.hint->args.empty() ? std::get<std::string>(e.hint->args[0]) : "";
}

TEST(Units, CountsArePowersOfAThousand) {
  EXPECT_DOUBLE_EQ(*parse_count("300B"), 3e11);
  EXPECT_DOUBLE_EQ(*parse_count("1.5k"), 1500);
  EXPECT_DOUBLE_EQ(*parse_count("2M"), 2e6);
  EXPECT_DOUBLE_EQ(*parse_count("15T"), 15e12);
  EXPECT_DOUBLE_EQ(*parse_count("42"), 42);
  EXPECT_DOUBLE_EQ(*parse_count("1e6"), 1e6);
  EXPECT_FALSE(parse_count("300G"));
  EXPECT_FALSE(parse_count("-3"));
  EXPECT_FALSE(parse_count(""));
  EXPECT_FALSE(parse_count("nan"));
  EXPECT_FALSE(parse_count("inf"));
  EXPECT_FALSE(parse_count("1e999"));
}

TEST(Units, SizesNeedBytesOrBinaryBytes) {
  EXPECT_EQ(parse_bytes("80GB")->in_base(), 80e9);
  EXPECT_EQ(parse_bytes("80GiB")->in_base(), 80.0 * 1073741824);
  EXPECT_EQ(parse_bytes("80 GiB")->in_base(), 80.0 * 1073741824);
  EXPECT_EQ(parse_bytes("24564MiB")->in_base(), 24564.0 * 1048576);
  EXPECT_EQ(parse_bytes("2TB")->in_base(), 2e12);
  EXPECT_EQ(parse_bytes("512B")->in_base(), 512);
}

TEST(Units, ABareGOffersBothReadings) {
  auto r = parse_bytes("80G", "--host-memory");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().what.id, message_id(BaseMessage::ambiguous_size));
  EXPECT_EQ(r.error().where, "--host-memory");
  EXPECT_EQ(hint_of(r.error()), "80GB or 80GiB");
  EXPECT_EQ(hint_of(parse_bytes("64k").error()), "64kB or 64KiB");
  auto bare = parse_bytes("80");
  ASSERT_FALSE(bare);
  EXPECT_EQ(bare.error().what.id, message_id(BaseMessage::missing_unit));
  EXPECT_EQ(hint_of(bare.error()), "80GB or 80GiB");
  EXPECT_FALSE(parse_bytes("80Gb"));  // bits
  EXPECT_FALSE(parse_bytes("GB"));
}

TEST(Units, LengthsArePowersOf1024) {
  EXPECT_EQ(*parse_length("32k"), 32768);
  EXPECT_EQ(*parse_length("128K"), 131072);
  EXPECT_EQ(*parse_length("1M"), 1048576);
  EXPECT_EQ(*parse_length("4096"), 4096);
  EXPECT_EQ(*parse_length("1.5k"), 1536);
  EXPECT_FALSE(parse_length("1.7"));
  EXPECT_FALSE(parse_length("3G"));
}

TEST(Units, Durations) {
  EXPECT_DOUBLE_EQ(parse_duration("30d")->in_base(), 30 * 86400.0);
  EXPECT_DOUBLE_EQ(parse_duration("50ms")->in_base(), 0.05);
  EXPECT_DOUBLE_EQ(parse_duration("8h")->in_base(), 28800);
  EXPECT_DOUBLE_EQ(parse_duration("1h30min")->in_base(), 5400);
  EXPECT_DOUBLE_EQ(parse_duration("2 days")->in_base(), 172800);
  EXPECT_FALSE(parse_duration("30"));
  EXPECT_FALSE(parse_duration("30m"));  // minutes or months
  EXPECT_FALSE(parse_duration("1h x"));
  EXPECT_FALSE(parse_duration(""));
}

TEST(Units, RatesNeedAPeriod) {
  EXPECT_DOUBLE_EQ(parse_rate("20/s")->in_base(), 20);
  EXPECT_DOUBLE_EQ(parse_rate("1000/min")->in_base(), 1000.0 / 60);
  EXPECT_DOUBLE_EQ(parse_rate("2k/h")->in_base(), 2000.0 / 3600);
  EXPECT_FALSE(parse_rate("20"));
  EXPECT_FALSE(parse_rate("20/"));
  EXPECT_FALSE(parse_rate("/s"));
  EXPECT_FALSE(parse_rate("20/parsec"));
}

TEST(Units, MoneyIsASumOrARate) {
  EXPECT_EQ(std::get<Dollars>(*parse_money("1500USD")), dollars(1500));
  EXPECT_EQ(std::get<Dollars>(*parse_money("2kUSD")), dollars(2000));
  EXPECT_EQ(std::get<DollarsPerSecond>(*parse_money("10USD/h")), dollars_per_hour(10));
  EXPECT_DOUBLE_EQ(std::get<DollarsPerSecond>(*parse_money("2000USD/month")).in_base(),
                   2000 / (730 * 3600.0));
  EXPECT_FALSE(parse_money("1500"));
  EXPECT_FALSE(parse_money("1500EUR"));
  EXPECT_FALSE(parse_money("10USD/"));
}

TEST(Units, PowerBandwidthAndFractions) {
  EXPECT_EQ(parse_watts("350W")->in_base(), 350);
  EXPECT_EQ(parse_watts("1.5kW")->in_base(), 1500);
  EXPECT_FALSE(parse_watts("350"));
  EXPECT_EQ(parse_bandwidth("400Gb/s")->in_base(), 50e9);
  EXPECT_EQ(parse_bandwidth("900GB/s")->in_base(), 900e9);
  EXPECT_DOUBLE_EQ(*parse_fraction("90%"), 0.9);
  EXPECT_DOUBLE_EQ(*parse_fraction("0.25"), 0.25);
  EXPECT_FALSE(parse_fraction("2"));
  EXPECT_FALSE(parse_fraction("101%"));
}

TEST(Units, ChosenTextsAreShort) {
  EXPECT_EQ(write_bytes(gibibytes(80)), "80GiB");
  EXPECT_EQ(write_bytes(gigabytes(80)), "80GB");
  EXPECT_EQ(write_bytes(bytes(7)), "7B");
  EXPECT_EQ(write_length(32768), "32k");
  EXPECT_EQ(write_length(1000), "1000");
  EXPECT_EQ(write_count(3e11), "300B");
  EXPECT_EQ(write_duration(days(30)), "30d");
  EXPECT_EQ(write_duration(milliseconds(50)), "50ms");
  EXPECT_EQ(write_rate(PerSecond::base(20)), "20/s");
  EXPECT_EQ(write_money(dollars(1500)), "1500USD");
  EXPECT_EQ(write_money(dollars_per_hour(10)), "10USD/h");
  EXPECT_EQ(write_watts(watts(350)), "350W");
}

TEST(Units, WhatIsWrittenReadsBackTheSame) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    auto n = static_cast<std::int64_t>(random() >> (12 + random() % 48));
    double v = static_cast<double>(n);
    EXPECT_EQ(*parse_length(write_length(n)), n);
    EXPECT_EQ(*parse_count(write_count(v)), v);
    EXPECT_EQ(parse_bytes(write_bytes(bytes(v)))->in_base(), v);
    double small = v / 1024 / 1024;
    EXPECT_EQ(parse_duration(write_duration(seconds(small)))->in_base(), small);
    EXPECT_EQ(parse_rate(write_rate(PerSecond::base(small)))->in_base(), small);
    EXPECT_EQ(parse_watts(write_watts(watts(small)))->in_base(), small);
    EXPECT_EQ(*parse_money(write_money(dollars(small))), Money(dollars(small)));
    auto rate = DollarsPerSecond::base(small / 3600);
    EXPECT_EQ(*parse_money(write_money(rate)), Money(rate));
  }
}

TEST(Units, ACommaGetsBothReadings) {
  EXPECT_EQ(hint_of(parse_duration("2,5d").error()), "2.5d");
  EXPECT_EQ(hint_of(parse_length("46,900").error()), "46900 or 46.900");
  EXPECT_EQ(hint_of(parse_length("1,046,900").error()), "1046900");
  EXPECT_EQ(hint_of(parse_bytes("1,5GiB").error()), "1.5GiB");
}

}  // namespace
}  // namespace trigon
