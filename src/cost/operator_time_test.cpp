#include <gtest/gtest.h>

#include <cmath>

#include "cost/test_devices.hpp"

namespace trigon {
namespace {

Operator gemm(double m, double n, double k, Format weights = Format::bf16) {
  Operator op;
  op.m = m, op.n = n, op.k = k;
  op.weights = weights;
  op.flops = 2 * m * n * k;
  op.weight_bytes = n * k * bits_per_element(weights) / 8;
  op.data_bytes = m * (n + k) * 2;
  return op;
}

class OperatorTimes : public testing::Test {
 protected:
  double seconds(const Operator& op) const { return operator_time(d, op).seconds; }
  Accelerator card = test::round_card();
  DeviceModel d = test::round_device(card);
};

TEST_F(OperatorTimes, ComputeRoof) {
  // 2 x 8192^3 at 100 TFLOP/s; 3 x 128 MiB at 1 TB/s hide behind it.
  Operator op = gemm(8192, 8192, 8192);
  EXPECT_NEAR(seconds(op), 2 * 8192.0 * 8192 * 8192 / 100e12, 1e-9);
  EXPECT_EQ(operator_time(d, op).bound, Bound::compute);
}

Operator window(double positions, double channels, double filters, double groups, Format f) {
  Operator op;
  op.kind = OperatorKind::convolution;
  op.m = positions, op.n = filters, op.k = 9 * channels, op.groups = groups;
  op.weights = op.activations = f;
  op.flops = 2 * op.m * op.n * op.k * groups;
  return op;
}

TEST_F(OperatorTimes, MinimalFilteringTakesSixteenProductsForThirtySix) {
  d.engine.convolution_k_half = 0;
  Operator op = window(1 << 16, 256, 256, 1, Format::f32);
  const double direct = seconds(op);
  EXPECT_NEAR(direct, op.flops / 10e12, 1e-3 * direct);
  op.minimal_filtering = true;
  EXPECT_NEAR(seconds(op) / direct, 16. / 36, 1e-3);
  // Matrix units have no such kernels, nor has oneDNN's default on processors.
  op.weights = op.activations = Format::tf32;
  EXPECT_NEAR(seconds(op), op.flops / 50e12, 1e-3 * seconds(op));
}

TEST_F(OperatorTimes, ConvolutionsOverTimeAndInVolumesHaveRatesOfTheirOwn) {
  d.engine.convolution_k_half = 0;
  d.engine.line_convolution_factor = 0.5;
  d.engine.volume_convolution_factor = 0.25;
  Operator op = window(1 << 16, 256, 256, 1, Format::f32);
  const double image = seconds(op);
  op.axes = 1;
  EXPECT_NEAR(seconds(op) / image, 2, 0.01);
  op.axes = 3;
  EXPECT_NEAR(seconds(op) / image, 4, 0.01);
}

TEST_F(OperatorTimes, DepthwiseWindowsLoadTwoWordsForEachProduct) {
  d.core_hz = 100e9;  // 100 multiprocessors at 1 GHz: 3.2 TFLOP/s of single words
  const Operator single = window(1 << 16, 1, 1, 1024, Format::f32);
  EXPECT_NEAR(seconds(single), single.flops / 3.2e12, 1e-3 * seconds(single));
  const Operator pairs = window(1 << 16, 1, 1, 1024, Format::f16);
  EXPECT_NEAR(seconds(pairs), pairs.flops / 6.4e12, 1e-3 * seconds(pairs));
}

TEST_F(OperatorTimes, ALargeCacheBesideSlowMemoryGainsMost) {
  d.l2_bytes = 64e6;
  d.engine.cache_speedup = 1.25;
  Operator op;
  op.kind = OperatorKind::elementwise;
  op.data_bytes = 16e6;  // a quarter of the cache: all of it stays there
  EXPECT_NEAR(seconds(op), 16e6 / 1.25 / 1e12, 1e-12);
  // 100 multiprocessors that read 20 GB/s each: twice the memory.
  d.operators.attention.warm_rate = 20e9;
  EXPECT_NEAR(seconds(op), 16e6 / 2.5 / 1e12, 1e-12);
  // Less than the memory is no loss.
  d.operators.attention.warm_rate = 5e9;
  EXPECT_NEAR(seconds(op), 16e6 / 1.25 / 1e12, 1e-12);
}

TEST_F(OperatorTimes, HeadsThatAreNotAlignedLeaveTheMatrixUnits) {
  Operator op;
  op.kind = OperatorKind::attention;
  op.m = 12, op.n = 12, op.k = 150;
  op.sequences = 4, op.group_size = 1;
  op.query_tokens = op.key_tokens = 2048;
  op.activations = Format::f16;
  op.flops = 4 * 2048.0 * 2048 * 150 * 12 * 4;
  const double fused = seconds(op);
  EXPECT_LT(fused, op.flops / 80e12);
  // Kept scores: 150 values of 16 bit are no multiple of 16 bytes, 10 TFLOP/s of the vector units.
  op.scores_kept = true;
  EXPECT_NEAR(seconds(op), op.flops / 10e12, 1e-3 * op.flops / 10e12);
  op.k = 144;
  EXPECT_NEAR(seconds(op), fused, 1e-12);
}

TEST_F(OperatorTimes, BandwidthRoof) {
  Operator op = gemm(1, 8192, 8192);
  double bytes = 8192.0 * 8192 * 2 + 2 * 8192 * 2;
  EXPECT_NEAR(seconds(op), bytes / 1e12, 1e-9);
  EXPECT_EQ(operator_time(d, op).bound, Bound::bandwidth);
  // Four-bit weights cost a quarter of the reading and none of the arithmetic.
  Operator narrow = gemm(1, 8192, 8192, Format::int4_g128);
  EXPECT_NEAR(seconds(op) / seconds(narrow), 16 / bits_per_element(Format::int4_g128), 0.01);
}

TEST_F(OperatorTimes, LaunchesBindSmallOperators) {
  d.operators.launch_seconds = 5e-6;
  Operator op = gemm(1, 64, 64);
  EXPECT_NEAR(seconds(op), 5e-6, 1e-7);
  EXPECT_EQ(operator_time(d, op).bound, Bound::latency);
  // A list pays each launch.
  EXPECT_NEAR(list_seconds(d, {op, op, op}), 3 * seconds(op), 1e-15);
}

TEST_F(OperatorTimes, FewCoresCannotFillMuchBandwidth) {
  Operator op = gemm(1, 8192, 8192);
  const double bytes = op.weight_bytes + op.data_bytes, full = seconds(op);
  // 100 cores at 1.25 GHz with 4 bytes a clock in flight: half of 1 TB/s.
  d.core_hz = 100 * 1.25e9;
  d.engine.core_stream = 4;
  const double slower = bytes / 0.5e12;
  EXPECT_NEAR(seconds(op), behind_host(full, slower), 1e-9);
  EXPECT_GT(seconds(op), slower);
  // What is plenty does not bind.
  d.engine.core_stream = 64;
  EXPECT_NEAR(seconds(op) / full, 1, 1e-3);
  // A device of unknown cores has the memory's roof alone.
  d.core_hz = 0;
  d.engine.core_stream = 1;
  EXPECT_DOUBLE_EQ(seconds(op), full);
}

TEST_F(OperatorTimes, EnginesShareOrAvoidFixedTimes) {
  d.operators.launch_seconds = 5e-6;
  d.operators.matrix[static_cast<std::size_t>(MathClass::half)].latency_seconds = 3e-6;
  Operator op = gemm(1, 64, 64);
  const double body = seconds(op) - 8e-6;
  d.engine.fixed_factor = 0.5;
  EXPECT_NEAR(seconds(op), body + 4e-6, 1e-12);
}

// Kernels of prompts and of single tokens are others, and so are their factors.
TEST_F(OperatorTimes, PromptsHaveTheirOwnAttention) {
  d.operators.launch_seconds = 0;
  Operator op;
  op.kind = OperatorKind::attention;
  op.sequences = 1, op.m = 32, op.n = 8, op.k = 128, op.group_size = 4;
  op.key_tokens = 4096;
  op.activations = Format::f16;
  op.data_bytes = 1e8;
  op.flops = 1e9;
  op.query_tokens = 1;
  const double decode = seconds(op);
  op.query_tokens = 512;
  const double prompt = seconds(op);
  d.engine.prompt_attention_factor = 0.5;
  EXPECT_NEAR(seconds(op), 2 * prompt, 1e-9);
  op.query_tokens = 1;
  EXPECT_DOUBLE_EQ(seconds(op), decode);
}

TEST_F(OperatorTimes, SmoothCornerAddsWhereRoofsMeet) {
  for (auto& m : d.operators.matrix) m.sharpness = 1;
  Operator op = gemm(128, 8192, 8192);
  OperatorTime t = operator_time(d, op);
  EXPECT_NEAR(t.seconds, t.compute_seconds + t.memory_seconds, 1e-12);
  for (auto& m : d.operators.matrix) m.sharpness = 3;
  EXPECT_NEAR(seconds(op),
              std::cbrt(std::pow(t.compute_seconds, 3) + std::pow(t.memory_seconds, 3)), 1e-12);
}

TEST_F(OperatorTimes, ShortReductionsAreSlower) {
  auto& half = d.operators.matrix[static_cast<std::size_t>(MathClass::half)];
  half.k_half = 1024;
  Operator op = gemm(8192, 8192, 1024);
  // At k = k_half half of the ceiling is reached.
  EXPECT_NEAR(operator_time(d, op).compute_seconds, 2 * 2 * 8192.0 * 8192 * 1024 / 100e12, 1e-9);
}

TEST_F(OperatorTimes, TilesRoundUp) {
  auto compute = [&](double m, double n) {
    return operator_time(d, gemm(m, n, 4096)).compute_seconds;
  };
  EXPECT_DOUBLE_EQ(compute(100, 6400), compute(128, 6400));
  EXPECT_DOUBLE_EQ(compute(128, 6337), compute(128, 6400));
  // Below a tile, rows round up to 16 as the matrix unit does.
  EXPECT_DOUBLE_EQ(compute(2, 6400), compute(16, 6400));
  EXPECT_DOUBLE_EQ(compute(33, 6400), compute(48, 6400));
  // One row takes 10 times as long on the vector units as its own share of the matrix unit would,
  // which is less than 16 rows.
  EXPECT_NEAR(compute(1, 6400), compute(16, 6400) * 10 / 16, 1e-12);
}

TEST_F(OperatorTimes, PartlyFilledWaves) {
  auto& half = d.operators.matrix[static_cast<std::size_t>(MathClass::half)];
  half.wave_exponent = 1;
  auto compute = [&](double tiles) {
    return operator_time(d, gemm(64, 64 * tiles, 4096)).compute_seconds;
  };
  // 100 SMs: 101 tiles take as long as 200.
  EXPECT_NEAR(compute(101), compute(200), 1e-12);
  EXPECT_NEAR(compute(50), compute(100), 1e-12);
  half.wave_exponent = 0;
  EXPECT_NEAR(compute(50) * 2, compute(100), 1e-12);
}

TEST_F(OperatorTimes, GroupedMatricesPadEachExpert) {
  Operator op = gemm(16, 4096, 4096);
  op.kind = OperatorKind::grouped_gemm;
  op.groups = 8;
  Operator packed = op;
  packed.groups = 1;
  // Two rows for each of 8 experts are padded to 16 rows each.
  EXPECT_NEAR(operator_time(d, op).compute_seconds, 8 * operator_time(d, packed).compute_seconds,
              1e-12);
  d.operators.grouped_factor = 0.5;
  EXPECT_NEAR(operator_time(d, packed).compute_seconds, 2 * 2 * 16.0 * 4096 * 4096 / 100e12, 1e-12);
  d.operators.grouped_latency_seconds = 1e-3;
  EXPECT_GT(seconds(op), 1e-3);
}

TEST_F(OperatorTimes, AttentionTakesBothRoofs) {
  Operator op;
  op.kind = OperatorKind::attention;
  op.sequences = 64, op.query_tokens = 1, op.key_tokens = 4096;
  op.m = 32, op.n = 8, op.k = 128, op.group_size = 4;
  op.flops = 2.0 * 64 * 4096 * 32 * 256;
  op.data_bytes = 64.0 * 4096 * 8 * 256 * 2;
  OperatorTime t = operator_time(d, op);
  EXPECT_NEAR(t.memory_seconds, op.data_bytes / 1e12, 1e-9);
  // Four heads fill a quarter of the 16 rows that the matrix unit computes.
  EXPECT_NEAR(t.compute_seconds, 4 * op.flops / 100e12, 1e-9);
  EXPECT_EQ(t.bound, Bound::bandwidth);
  // MLA: 128 heads share one latent, and arithmetic binds.
  op.m = 128, op.n = 1, op.k = 576, op.group_size = 128;
  op.flops = 2.0 * 64 * 4096 * 128 * (576 + 512);
  op.data_bytes = 64.0 * 4096 * 576 * 2;
  EXPECT_NEAR(operator_time(d, op).compute_seconds, op.flops / 100e12, 1e-9);
  EXPECT_EQ(operator_time(d, op).bound, Bound::compute);
}

TEST_F(OperatorTimes, AttentionOfAPromptFillsBlocks) {
  Operator op;
  op.kind = OperatorKind::attention;
  op.sequences = 1, op.query_tokens = 128 * 25, op.key_tokens = 1600;
  op.m = 4, op.n = 4, op.k = 128;  // 4 heads x 25 blocks: one whole wave of 100 SMs
  op.flops = 1e12;
  EXPECT_NEAR(operator_time(d, op).compute_seconds, 0.01, 1e-9);
  op.m = 2;  // half a wave does the same work in twice the time
  EXPECT_NEAR(operator_time(d, op).compute_seconds, 0.02, 1e-9);
}

TEST_F(OperatorTimes, RowsReadAgainComeFromTheCacheWhereTheyFit) {
  Operator op;
  op.kind = OperatorKind::elementwise;
  op.data_bytes = 2e9, op.again_bytes = 1e9;
  op.row_bytes = 1e4;  // 16 rows on each of 100 multiprocessors: 16 MB
  EXPECT_NEAR(seconds(op), 3e-3, 1e-9);
  d.l2_bytes = 16e6;
  EXPECT_NEAR(seconds(op), 3e-3, 1e-9);
  d.l2_bytes = 32e6;
  EXPECT_NEAR(seconds(op), 2.5e-3, 1e-9);
  d.l2_bytes = 64e6;
  EXPECT_NEAR(seconds(op), 2e-3, 1e-9);
}

TEST_F(OperatorTimes, MatricesReadForEachRowComeFromTheCacheWhereTheyFit) {
  Operator op;
  op.m = 11, op.n = 1000, op.k = 1000;
  op.weights = Format::int4_g128;
  op.weight_bytes = op.row_bytes = 1e8;
  op.again_bytes = 1e9;                    // ten rows more
  d.operators.attention.warm_rate = 20e9;  // of 100 multiprocessors: twice the memory's
  EXPECT_NEAR(seconds(op), 1.1e-3, 1e-6);
  d.l2_bytes = 4e8;  // the matrix lies in it
  EXPECT_NEAR(seconds(op), 0.6e-3, 1e-6);
  d.l2_bytes = 1e8;  // half of it
  EXPECT_NEAR(seconds(op), 0.85e-3, 1e-6);
}

TEST_F(OperatorTimes, ElementwiseKernelsHaveTheirOwnShareOfTheBandwidth) {
  Operator op;
  op.kind = OperatorKind::elementwise;
  op.data_bytes = 1e9;
  d.operators.elementwise = {0.5, 1e9, 1e-4, 0};
  EXPECT_NEAR(seconds(op), 4e-3, 1e-9);
  op.timed_alone = true;
  EXPECT_NEAR(seconds(op), 4.1e-3, 1e-9);
}

TEST_F(OperatorTimes, AttentionTimedAloneIsReadFromTheCache) {
  Operator op;
  op.kind = OperatorKind::attention;
  op.sequences = 1, op.query_tokens = 1, op.key_tokens = 1000, op.m = 8, op.n = 8, op.k = 128;
  op.flops = 1, op.data_bytes = 1e6;
  d.l2_bytes = 4e6;                        // holds all of it
  d.operators.attention.warm_rate = 40e9;  // 4 TB/s of 100 multiprocessors
  EXPECT_NEAR(seconds(op), 1e-6, 1e-9);
  op.timed_alone = true;
  EXPECT_NEAR(seconds(op), 0.25e-6, 1e-9);
}

TEST_F(OperatorTimes, ElementwiseIsRead) {
  Operator op;
  op.kind = OperatorKind::elementwise;
  op.data_bytes = 1e9;
  op.flops = 1e6;
  EXPECT_NEAR(seconds(op), 1e-3, 1e-9);
  d.operators.stream.half_bytes = 1e9;
  EXPECT_NEAR(seconds(op), 2e-3, 1e-9);
}

TEST_F(OperatorTimes, NeverFasterWithMoreOfAnything) {
  d.operators.matrix[static_cast<std::size_t>(MathClass::half)] = {0.8, 130, 0.1, 5, 1e-7, 0.1};
  d.operators.stream = {0.85, 5e4, 0.1};
  for (double m : {1, 17, 64, 300, 5000})
    for (double n : {64, 100, 4096})
      for (double k : {64, 1000, 8192}) {
        double base = seconds(gemm(m, n, k));
        EXPECT_LE(base, seconds(gemm(2 * m, n, k)));
        EXPECT_LE(base, seconds(gemm(m, 2 * n, k)));
        EXPECT_LE(base, seconds(gemm(m, n, 2 * k)));
        DeviceModel faster = d;
        faster.bandwidth *= 2;
        EXPECT_LE(operator_time(faster, gemm(m, n, k)).seconds, base);
        faster = d;
        for (MathUnit& u : faster.unit) u.peak *= 2;
        EXPECT_LE(operator_time(faster, gemm(m, n, k)).seconds, base);
      }
}

TEST_F(OperatorTimes, CollectivesKeepTheirStride) {
  Operator op;
  op.kind = OperatorKind::all_to_all;
  op.payload_bytes = 1e9;
  op.ranks = 4;
  d.inter = DeviceModel::Wire{10e9, PeerTopology::fabric_switch, 0, d.intra.c};
  double inside = seconds(op);
  op.stride = 8;  // one rank a node: everything crosses the network
  EXPECT_NEAR(seconds(op), 10 * inside, 1e-9);
}

TEST(MathClass, WhatRunsWhere) {
  struct Case {
    Format weights, activations;
    MathClass with, without;  // FP8 and INT8 units
  };
  const Case cases[] = {
      {Format::bf16, Format::bf16, MathClass::half, MathClass::half},
      {Format::f16, Format::f16, MathClass::half, MathClass::half},
      {Format::f32, Format::f32, MathClass::fp32, MathClass::fp32},
      {Format::f32, Format::bf16, MathClass::half, MathClass::half},
      {Format::bf16, Format::f32, MathClass::fp32, MathClass::fp32},
      {Format::fp8_tensor, Format::bf16, MathClass::fp8, MathClass::half},
      {Format::fp8_block, Format::bf16, MathClass::fp8, MathClass::half},
      {Format::int8, Format::bf16, MathClass::int8, MathClass::half},
      // Weight-only formats save bytes, not arithmetic.
      {Format::int4_g128, Format::bf16, MathClass::half, MathClass::half},
      {Format::nf4, Format::bf16, MathClass::half, MathClass::half},
      {Format::q4_k, Format::bf16, MathClass::half, MathClass::half},
      // This card has no FP4 units.
      {Format::nvfp4, Format::bf16, MathClass::half, MathClass::half},
      {Format::mxfp4, Format::bf16, MathClass::half, MathClass::half},
  };
  Accelerator hopper_like = test::round_card(), ampere_like = test::round_card();
  ampere_like.peak[static_cast<std::size_t>(MathMode::fp8_matrix)].reset();
  ampere_like.peak[static_cast<std::size_t>(MathMode::int8_matrix)].reset();
  DeviceModel with = test::round_device(hopper_like), without = test::round_device(ampere_like);
  for (const Case& c : cases) {
    EXPECT_EQ(math_class(with, c.weights, c.activations), c.with)
        << info(c.weights).name << " x " << info(c.activations).name;
    EXPECT_EQ(math_class(without, c.weights, c.activations), c.without)
        << info(c.weights).name << " x " << info(c.activations).name;
  }
}

TEST(Units, HalfRateOfGeForce) {
  Accelerator a = test::round_card();
  // GeForce: fp32 accumulation at half of the fp16 rate.
  a.peak[static_cast<std::size_t>(MathMode::fp16_matrix_fp16_accumulate)] =
      teraflops_per_second(200);
  DeviceModel d;
  fill_units(d, a);
  EXPECT_EQ(d.unit[static_cast<std::size_t>(MathClass::half)].peak, 100e12);
  // Without matrix units 16-bit products run on the vector units.
  a.peak = {};
  a.peak[static_cast<std::size_t>(MathMode::fp32_vector)] = teraflops_per_second(10);
  fill_units(d, a);
  EXPECT_EQ(d.unit[static_cast<std::size_t>(MathClass::half)].peak, 10e12);
  EXPECT_EQ(d.unit[static_cast<std::size_t>(MathClass::fp8)].peak, 0);
}

}  // namespace
}  // namespace trigon
