#include "model/format.hpp"

#include <gtest/gtest.h>

namespace trigon {
namespace {

TEST(Format, EveryFormatHasItsRowAndResolvesByItsName) {
  for (int i = 0; i < static_cast<int>(Format::unknown); ++i) {
    auto f = static_cast<Format>(i);
    EXPECT_EQ(info(f).format, f);
    EXPECT_GT(info(f).block_bytes, 0) << info(f).name;
    EXPECT_EQ(format_by_name(info(f).name), f) << info(f).name;
  }
  EXPECT_EQ(format_by_name("unknown"), std::nullopt);
  EXPECT_EQ(format_by_name("q4"), std::nullopt);
  EXPECT_EQ(format_by_name("AWQ"), Format::int4_g128);
  EXPECT_EQ(format_by_name("F8-E4M3"), Format::f8_e4m3);
}

TEST(Format, BitsAWeightAreTheKnownOnes) {
  EXPECT_DOUBLE_EQ(bits_per_element(Format::mxfp4), 4.25);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::nvfp4), 4.5);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::int4_g128), 4.15625);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::int8_g128), 8.1875);  // a 16-bit scale, 8-bit zero
  EXPECT_DOUBLE_EQ(bits_per_element(Format::nf4), 4.5);
  EXPECT_NEAR(bits_per_element(Format::nf4_double), 4.127, 1e-3);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::q4_k), 4.5);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::q6_k), 6.5625);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::q8_0), 8.5);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::iq4_xs), 4.25);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::iq2_xxs), 2.0625);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::tq2_0), 2.0625);
  EXPECT_DOUBLE_EQ(bits_per_element(Format::iq6_k), 6.625);
}

TEST(Format, GgufRowsArePaddedToBlocksAndOthersAreNot) {
  EXPECT_EQ(bytes_of(Format::q4_0, 3, 33)->value(), 3 * 2 * 18);
  EXPECT_EQ(bytes_of(Format::mxfp4, 4, 8)->value(), 17);
  EXPECT_EQ(bytes_of(Format::iq4_ks, 2, 512)->value(), 2 * (2 * 136 + 4));
  EXPECT_EQ(bytes_of(Format::bf16, 3, 5)->value(), 30);
  EXPECT_EQ(bytes_of(Format::bf16, 0, 5)->value(), 0);
}

TEST(Format, Fp8BlocksCarryOneScaleForEachStartedTile) {
  EXPECT_EQ(bytes_of(Format::fp8_block, 576, 7168)->value(), 576 * 7168 + 5 * 56 * 4);
}

TEST(Format, WhatHasNoSizeSaysSo) {
  EXPECT_FALSE(bytes_of(Format::unknown, 1, 1));
  EXPECT_FALSE(bytes_of(Format::bf16, -1, 1));
  EXPECT_FALSE(bytes_of(Format::bf16, INT64_MAX, 2));
  EXPECT_FALSE(bytes_of(Format::q8_0, INT64_MAX, 32));
  EXPECT_FALSE(bytes_of(Format::fp8_block, INT64_MAX / 2, 1024));
}

}  // namespace
}  // namespace trigon
