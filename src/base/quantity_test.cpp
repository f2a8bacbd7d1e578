#include "base/quantity.hpp"

#include <gtest/gtest.h>

#include <type_traits>

#include "base/byte_count.hpp"

namespace trigon {
namespace {

TEST(Quantity, DecimalAndBinaryUnitsDiffer) {
  EXPECT_EQ(gigabytes(1).in_base(), 1e9);
  EXPECT_EQ(gibibytes(1).in_base(), 1073741824.0);
  EXPECT_EQ(megabytes(1).in_base(), 1e6);
  EXPECT_EQ(mebibytes(1).in_base(), 1048576.0);
  EXPECT_DOUBLE_EQ(gibibytes(80).over(gigabytes(1)), 85.89934592);
}

TEST(Quantity, MakersNameTheirUnit) {
  EXPECT_EQ(gigabits_per_second(400), gigabytes_per_second(50));
  EXPECT_EQ(days(1), hours(24));
  EXPECT_DOUBLE_EQ(milliseconds(50).in_base(), 0.05);
  EXPECT_DOUBLE_EQ(microseconds(3).over(milliseconds(1)), 3e-3);
  EXPECT_EQ(teraflops(2), flops(2e12));
  EXPECT_EQ(teraflops_per_second(1) * seconds(2), teraflops(2));
  EXPECT_DOUBLE_EQ((dollars_per_hour(3.6) * hours(10)).in_base(), 36);
  EXPECT_DOUBLE_EQ((watts(1000) * hours(1)).in_base(), kilowatt_hours(1).in_base());
}

TEST(Quantity, DividingOutADimensionLeavesItsType) {
  static_assert(std::is_same_v<decltype(gigabytes(1) / gigabytes(1)), double>);
  static_assert(std::is_same_v<decltype(gigabytes(1) / seconds(1)), BytesPerSecond>);
  static_assert(std::is_same_v<decltype(gigabytes(1) / gigabytes_per_second(1)), Seconds>);
  static_assert(std::is_same_v<decltype(1.0 / seconds(1) * seconds(1)), double>);
  static_assert(std::is_same_v<decltype(watts(1) * seconds(1)), Joules>);
  static_assert(std::is_same_v<decltype(tokens(1) / seconds(1) / (1.0 / seconds(1))), Tokens>);
  EXPECT_EQ((gigabytes(3350) / gigabytes_per_second(3350)), seconds(1));
  EXPECT_EQ(gigabytes(6) / gigabytes(2), 3.0);
}

TEST(Quantity, ArithmeticAndOrder) {
  Bytes b = gigabytes(1);
  b += gigabytes(2);
  b -= gigabytes(1);
  EXPECT_EQ(b, gigabytes(2));
  EXPECT_EQ(b * 2, 2 * b);
  EXPECT_EQ(b / 2, gigabytes(1));
  EXPECT_EQ(-b + b, bytes(0));
  EXPECT_LT(gigabytes(1), gibibytes(1));
  EXPECT_GT(seconds(1), milliseconds(999));
}

TEST(ByteCount, AddsAndMultipliesExactly) {
  // Above 2^53 a double would round.
  ByteCount big((std::int64_t{1} << 53) + 1);
  EXPECT_EQ((big + ByteCount(2)).value(), (std::int64_t{1} << 53) + 3);
  EXPECT_EQ((ByteCount(3) * 7).value(), 21);
  ByteCount sum;
  sum += ByteCount(5);
  sum += ByteCount(6);
  EXPECT_EQ(sum, ByteCount(11));
  EXPECT_EQ(ByteCount(1024).as_bytes().in_base(), 1024.0);
  EXPECT_LT(ByteCount(1), ByteCount(2));
}

TEST(ByteCount, CheckedArithmeticSeesOverflow) {
  constexpr std::int64_t most = INT64_MAX, least = INT64_MIN;
  EXPECT_EQ(checked_add(most, 0), most);
  EXPECT_EQ(checked_add(most, 1), std::nullopt);
  EXPECT_EQ(checked_add(least, -1), std::nullopt);
  EXPECT_EQ(checked_mul(most / 2, 2), most - 1);
  EXPECT_EQ(checked_mul(most / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(checked_mul(least, -1), std::nullopt);
}

TEST(ByteCountDeathTest, OverflowIsABrokenInvariantWithBothOperands) {
  EXPECT_DEATH(ByteCount(INT64_MAX) + ByteCount(1), "broken invariant.*9223372036854775807 and 1");
  EXPECT_DEATH(ByteCount(INT64_MAX) * 2, "broken invariant.*9223372036854775807 and 2");
}

}  // namespace
}  // namespace trigon
