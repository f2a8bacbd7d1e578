#include "present/numbers.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/quantity.hpp"

namespace trigon {
namespace {

TEST(Numbers, ThreeSignificantDigits) {
  EXPECT_EQ(significant(0.012345), "0.0123");
  EXPECT_EQ(significant(1.2), "1.20");
  EXPECT_EQ(significant(99.96), "100");
  EXPECT_EQ(significant(999.6), "1,000");
  EXPECT_EQ(significant(12345), "12,300");
  EXPECT_EQ(significant(-1234567), "-1,230,000");
  EXPECT_EQ(significant(0), "0");
  EXPECT_EQ(significant(std::nan("")), "-");
  EXPECT_EQ(significant(1e20), "1.00e+20");
}

TEST(Numbers, ProseDropsZeros) {
  EXPECT_EQ(trimmed_number(1.2), "1.2");
  EXPECT_EQ(trimmed_number(12), "12");
  EXPECT_EQ(trimmed_number(100), "100");
  EXPECT_EQ(trimmed_number(0.5), "0.5");
}

TEST(Numbers, UnitsSuitTheSize) {
  EXPECT_EQ(in_words(gibibytes(18.26).in_base(), "B"), "18.3 GiB");
  EXPECT_EQ(in_words(gibibytes(0.25).in_base(), "B"), "0.25 GiB");
  EXPECT_EQ(in_words(3.35e12, "B/s"), "3.35 TB/s");
  EXPECT_EQ(in_words(0.0213, "s"), "21.3 ms");
  EXPECT_EQ(in_words(1.5, "s"), "1.5 s");
  EXPECT_EQ(in_words(90, "s"), "90 s");
  EXPECT_EQ(in_words(5400, "s"), "90 min");
  EXPECT_EQ(in_words(86400 * 20, "s"), "20 d");
  EXPECT_EQ(in_words(989.4e12, "FLOP/s"), "989 TFLOPS");
  EXPECT_EQ(in_words(32768, "tokens"), "32,768 tokens");
  EXPECT_EQ(in_words(3e11, "tokens"), "300B tokens");
  EXPECT_EQ(in_words(20, "1/s"), "20/s");
  EXPECT_EQ(in_words(2.5, "USD"), "2.50 USD");
  EXPECT_EQ(in_words(1500, "USD"), "1,500 USD");
  EXPECT_EQ(short_count(8.03e9), "8.03B");
  EXPECT_EQ(short_count(999.9e6), "1B");
}

TEST(Numbers, RangesShareTheUnitOfTheirValue) {
  Estimate<double> e{0.95, 0.8, 1.4, Basis::analytic};
  EXPECT_EQ(in_words(e, "s"), "950 ms (800 to 1,400)");
  EXPECT_EQ(in_words(exactly(2.0), "s"), "2 s");
  e.low = e.high = e.value;
  EXPECT_EQ(in_words(e, "s"), "950 ms");
}

TEST(Numbers, ARangeWithoutEndSaysSo) {
  EXPECT_EQ(in_words(Estimate<double>{0.05, 0.01, 3e8, Basis::analytic}, "s"), "50 ms (10 to inf)");
  EXPECT_EQ(in_words(Estimate<double>{20, 3e-9, 80, Basis::analytic}, "tokens/s"),
            "20 tokens/s (0 to 80)");
  EXPECT_EQ(in_words(Estimate<double>{0.05, 0.01, 0.5, Basis::analytic}, "s"), "50 ms (10 to 500)");
}

}  // namespace
}  // namespace trigon
