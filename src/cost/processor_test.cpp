// Processors as devices: what their sheets give, and what threads do.

#include <gtest/gtest.h>

#include "cost/device_model.hpp"
#include "hardware/parse.hpp"

namespace trigon {
namespace {

const FactStore& facts() {
  static const FactStore store = FactStore::embedded().value();
  return store;
}
const HardwareCatalog& hardware() {
  static const HardwareCatalog h = HardwareCatalog::from(facts()).value();
  return h;
}
const Calibration& calibration() {
  static const Calibration c = Calibration::load(facts()).value();
  return c;
}
DeviceModel device(std::string_view text) {
  static std::vector<Cluster> kept;
  kept.push_back(parse_hardware(text, hardware()).value());
  return make_operator_device(kept.back(), calibration()).value();
}
double peak(const DeviceModel& d, MathClass c) { return d.unit[static_cast<std::size_t>(c)].peak; }

// 16 cores at 4.5 GHz; two 256-bit multiply-adds of 32 bit a cycle, twice that in bfloat16, four
// times in 8 bit. Two channels of DDR5-5200.
TEST(Processor, DesktopWithVectorUnits) {
  const DeviceModel d = device("ryzen-9-7950x");
  EXPECT_NEAR(peak(d, MathClass::fp32), 16 * 32 * 4.5e9, 1e9);
  EXPECT_NEAR(peak(d, MathClass::half), 16 * 64 * 4.5e9, 1e9);
  EXPECT_NEAR(peak(d, MathClass::int8), 16 * 128 * 4.5e9, 1e9);
  EXPECT_NEAR(d.bandwidth, 83.2e9, 1e6);
}

// Without units for 16 bit values are widened to 32.
TEST(Processor, OldCoresWiden) {
  const DeviceModel d = device("core-i7-8700k");
  EXPECT_DOUBLE_EQ(peak(d, MathClass::half), peak(d, MathClass::fp32));
  EXPECT_EQ(peak(d, MathClass::int8), 0);
  EXPECT_EQ(math_class(d, Format::int8, Format::int8), MathClass::half);
}

// 56 cores at 2 GHz with matrix units: 1,024 operations a cycle in bfloat16, 2,048 in 8 bit.
TEST(Processor, ServerWithMatrixUnits) {
  const DeviceModel d = device("2xxeon-platinum-8480");
  EXPECT_NEAR(peak(d, MathClass::half), 56 * 1024 * 2e9, 1e9);
  EXPECT_NEAR(peak(d, MathClass::int8), 56 * 2048 * 2e9, 1e9);
  EXPECT_NEAR(d.bandwidth, 307.2e9, 1e6);  // of one socket
}

TEST(Processor, FewThreadsDoNotFillTheChannels) {
  const DeviceModel all = device("ryzen-9-7950x"), two = device("ryzen-9-7950x{threads=2}");
  // 64 lines of 64 bytes every 80 ns; elsewhere 30 GB/s of a core.
  EXPECT_NEAR(device("ryzen-9-7950x{threads=1}").bandwidth, 51.2e9, 1e6);
  EXPECT_NEAR(device("core-i7-12700h{threads=1}").bandwidth, 30e9, 1e6);
  EXPECT_NEAR(peak(two, MathClass::half), peak(all, MathClass::half) / 8, 1e6);
  EXPECT_DOUBLE_EQ(device("ryzen-9-7950x{threads=64}").bandwidth, all.bandwidth);
  double before = 0;
  for (int n = 1; n <= 16; ++n) {
    const double b = device("ryzen-9-7950x{threads=" + std::to_string(n) + "}").bandwidth;
    EXPECT_GE(b, before);
    before = b;
  }
}

// 512 rows of a matrix of 4,096 x 4,096 look up 4 weights at a time: 2.1e9 look-ups, one a cycle
// on 16 cores of 5.7 GHz. Kernels that unpack a block for 8 rows need an eighth.
TEST(Processor, CodebooksAreLookedUp) {
  DeviceModel d = device("ryzen-9-7950x");
  Operator op;
  op.kind = OperatorKind::gemm;
  op.groups = 1, op.m = 512, op.n = op.k = 4096;
  op.activations = Format::f16;
  const auto seconds = [&](Format f) {
    op.weights = f;
    return operator_time(d, op).compute_seconds;
  };
  const double plain = seconds(Format::q3_k), each = 512. * 4096 * 4096 / 4 / (16 * 5.7e9);
  EXPECT_NEAR(seconds(Format::iq3_s) - plain, each, each * 1e-6);
  EXPECT_NEAR(seconds(Format::iq2_xxs) - plain, each / 2, each * 1e-6);
  d.lookup_rows = 8;
  EXPECT_NEAR(seconds(Format::iq3_s) - plain, each / 8, each * 1e-6);
  d = device("rtx-4090");
  EXPECT_DOUBLE_EQ(seconds(Format::iq3_s), seconds(Format::q3_k));
}

TEST(Processor, LaunchesAreItsOwnWork) {
  const DeviceModel d = device("ryzen-9-7950x");
  EXPECT_DOUBLE_EQ(with_host(d, 3, 2), 5);
  EXPECT_LT(with_host(device("rtx-4090"), 3, 2), 5);
}

}  // namespace
}  // namespace trigon
