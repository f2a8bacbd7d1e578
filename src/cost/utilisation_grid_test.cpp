#include "cost/utilisation_grid.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/device_model.hpp"
#include "cost/test_devices.hpp"

namespace trigon {
namespace {

UtilisationGrid square() {
  UtilisationGrid g({GridAxis{0, 1, 2}, {10, 2, 2}, {}, {}});
  g.values() = {0.0F, 0.4F, 0.8F, 2.0F};  // (0,10) (0,12) (1,10) (1,12)
  return g;
}

TEST(UtilisationGrid, LinearBetweenItsNodesAndHeldOutside) {
  const UtilisationGrid g = square();
  EXPECT_NEAR(g.at({0, 10, 0, 0}), 0, 1e-6);
  EXPECT_NEAR(g.at({1, 12, 0, 0}), 2, 1e-6);
  EXPECT_NEAR(g.at({0, 11, 0, 0}), 0.2, 1e-6);
  EXPECT_NEAR(g.at({0.5, 11, 0, 0}), (0.0 + 0.4 + 0.8 + 2.0) / 4, 1e-6);
  EXPECT_NEAR(g.at({-5, 100, 0, 0}), 0.4, 1e-6);
  EXPECT_NEAR(g.at({7, -3, 9, 9}), 0.8, 1e-6);
}

TEST(UtilisationGrid, WeightsOfCornersAddToOne) {
  const UtilisationGrid g = square();
  std::array<GridCorner, kGridCorners> c;
  for (double x = -1; x < 2.1; x += 0.3)
    for (double y = 9; y < 13; y += 0.7) {
      const std::size_t n = g.corners({x, y, 0, 0}, c);
      double sum = 0, value = 0;
      for (std::size_t i = 0; i < n; ++i) {
        sum += c[i].weight;
        value += c[i].weight * static_cast<double>(g.values()[c[i].node]);
      }
      EXPECT_NEAR(sum, 1, 1e-12);
      EXPECT_NEAR(value, g.at({x, y, 0, 0}), 1e-12);
    }
}

TEST(UtilisationGrid, WrittenAndReadAgain) {
  UtilisationGrid g = square();
  g.values() = {-1.25F, 0.4F, 3.2F, -0.0625F};
  UtilisationGrid back({GridAxis{0, 1, 2}, {10, 2, 2}, {}, {}});
  ASSERT_EQ(g.rows().size(), 2u);
  ASSERT_TRUE(back.read_rows(g.rows()));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(back.values()[i], g.values()[i], 1.0 / 1024 + 1e-6);
  EXPECT_FALSE(back.read_rows({"AAAA"}));          // a row is missing
  EXPECT_FALSE(back.read_rows({"AA??", "AAAA"}));  // no digits
}

struct Grids : testing::Test {
  Accelerator card = test::round_card();
  DeviceModel d = test::round_device(card);
  Operator product(double m, Format weights) {
    Operator op;
    op.m = m, op.n = 4096, op.k = 4096;
    op.weights = weights;
    op.flops = 2 * m * op.n * op.k;
    op.weight_bytes = op.n * op.k * bits_per_element(weights) / 8;
    op.data_bytes = m * (op.n + op.k) * 2;
    return op;
  }
  void put(GridKind k, float value) {
    auto grids = std::make_shared<OperatorGrids>();
    grids->of[static_cast<std::size_t>(k)] = UtilisationGrid(grid_axes(k));
    for (float& v : grids->of[static_cast<std::size_t>(k)].values()) v = value;
    d.operators.grids = grids;
  }
};

TEST_F(Grids, MultiplyTheFormulaOfTheirOwnKernels) {
  const Operator half = product(512, Format::bf16), fp8 = product(512, Format::fp8_tensor);
  const double half_before = operator_time(d, half).seconds;
  const double fp8_before = operator_time(d, fp8).seconds;
  put(GridKind::gemm_half, std::log(1.5F));
  EXPECT_NEAR(operator_time(d, half).seconds, 1.5 * half_before, 1e-6 * half_before);
  EXPECT_EQ(operator_time(d, fp8).seconds, fp8_before);
}

TEST_F(Grids, KernelsThatWereNotTimedHaveNone) {
  Operator ggml = product(512, Format::q4_k);
  EXPECT_EQ(grid_place(d, ggml).kind, GridKind::none);
  EXPECT_EQ(grid_place(d, product(512, Format::int4_g128)).kind, GridKind::gemm_int4_only);
  Operator norm;
  norm.kind = OperatorKind::elementwise;
  EXPECT_EQ(grid_place(d, norm).kind, GridKind::none);
}

TEST_F(Grids, AttentionOfOneQueryAndOfManyAreApart) {
  Operator a;
  a.kind = OperatorKind::attention;
  a.sequences = 8, a.query_tokens = 1, a.key_tokens = 4096, a.m = 32, a.n = 8, a.k = 128;
  a.group_size = 4;
  const GridPlace decode = grid_place(d, a);
  EXPECT_EQ(decode.kind, GridKind::decode);
  EXPECT_EQ(decode.at, (GridPoint{12, 6, 2, 7}));
  a.weights = Format::fp8_tensor;
  EXPECT_EQ(grid_place(d, a).kind, GridKind::decode_fp8_cache);
  a.query_tokens = 1024;
  EXPECT_EQ(grid_place(d, a).kind, GridKind::prefill_fp8_cache);
  EXPECT_EQ(grid_place(d, a).at, (GridPoint{10, 8, 2, 7}));
}

TEST_F(Grids, WindowsHaveGridsOfTheirOwn) {
  Operator a;
  a.kind = OperatorKind::attention;
  a.sequences = 8, a.query_tokens = 1, a.key_tokens = 1024, a.m = 32, a.n = 8, a.k = 64;
  a.group_size = 4, a.window = 1024;
  EXPECT_EQ(grid_place(d, a).kind, GridKind::decode_window);
  EXPECT_EQ(grid_place(d, a).at, (GridPoint{10, 6, 2, 6}));
  a.query_tokens = 4096, a.key_tokens = 900;
  EXPECT_EQ(grid_place(d, a).kind, GridKind::prefill_window);
  EXPECT_EQ(grid_place(d, a).at, (GridPoint{12, 8, 10, 6}));
  a.weights = Format::fp8_tensor;
  EXPECT_EQ(grid_place(d, a).kind, GridKind::prefill_window_fp8_cache);
}

TEST_F(Grids, WindowsOfUntimedKernelsTakeThePlainGrid) {
  d.operators.grids = std::make_shared<OperatorGrids>();
  Operator a;
  a.kind = OperatorKind::attention;
  a.sequences = 8, a.query_tokens = 1, a.key_tokens = 1024, a.m = 32, a.n = 8, a.k = 64;
  a.group_size = 4, a.window = 1024;
  EXPECT_EQ(grid_place(d, a).kind, GridKind::decode);
  a.query_tokens = 4096;
  EXPECT_EQ(grid_place(d, a).kind, GridKind::prefill);
}

TEST_F(Grids, WhatIsTimedAloneIsWarmAndWaitsForItsHost) {
  d.l2_bytes = 400e6;
  d.operators.stream.warm_speedup = 3;
  Operator op = product(1, Format::fp8_block);
  const double cold = operator_time(d, op).seconds;
  op.timed_alone = true;
  // 16.8 MB are less than a quarter of the cache: all of it is read three times as fast.
  EXPECT_NEAR(operator_time(d, op).seconds, cold / 3, 0.01 * cold);
  d.operators.matrix[static_cast<std::size_t>(MatrixPath::fp8_block)].floor_seconds = 1e-3;
  EXPECT_EQ(operator_time(d, op).seconds, 1e-3);
  op.timed_alone = false;
  EXPECT_EQ(operator_time(d, op).seconds, cold);
}

TEST_F(Grids, WideningWeightsIsARoofOfItsOwn) {
  MatrixCoefficients& c = d.operators.matrix[static_cast<std::size_t>(MatrixPath::int4_only)];
  c.widened_per_second = 1e12;
  // 4096 x 4096 weights once for each 128 rows: 16.8 us at a million million a second.
  EXPECT_NEAR(operator_time(d, product(1, Format::int4_g128)).seconds, 16.777e-6, 0.2e-6);
  EXPECT_NEAR(operator_time(d, product(128, Format::int4_g128)).seconds, 43e-6, 1e-6);
  EXPECT_NEAR(operator_time(d, product(1, Format::bf16)).seconds, 33.6e-6, 0.2e-6);
}

}  // namespace
}  // namespace trigon
