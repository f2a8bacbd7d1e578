#include "cost/calibration.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "cost/device_model.hpp"
#include "cost/test_devices.hpp"

namespace trigon {
namespace {

constexpr const char* kSheets[] = {R"(
kind = "calibration"
id = "operators/any"
source = "test"
date = "2026-01"
half = { ceiling = 0.5, error = 0.2, k_half = 100 }
fp8 = { ceiling = 0.4, error = 0.3 }
stream = { ceiling = 0.7, error = 0.1 }
attention = { prefill_ceiling = 0.3, decode_ceiling = 0.6, error = 0.25 }
launch = { seconds = 4e-6, error = 0.9 }
)",
                                   R"(
kind = "calibration"
id = "operators/maker"
source = "test"
date = "2026-01"
stream = { ceiling = 0.75, error = 0.1 }
)",
                                   R"(
kind = "calibration"
id = "operators/hopper"
source = "test"
date = "2026-01"
half = { ceiling = 0.8, error = 0.1, k_half = 50 }
)",
                                   R"(
kind = "calibration"
id = "link/any-inside-node"
source = "test"
date = "2026-01"
ceiling = 0.7
error = 0.25
latency_seconds = 1e-6
)",
                                   R"(
kind = "calibration"
id = "link/any-between-nodes"
source = "test"
date = "2026-01"
ceiling = 0.6
error = 0.25
)",
                                   R"(
kind = "calibration"
id = "link/nvlink4"
source = "test"
date = "2026-01"
ceiling = 0.9
error = 0.25
)",
                                   R"(
kind = "calibration"
id = "engines"
source = "test"
date = "2026-01"
[[effect]]
kind = "serve"
compute = 0.5
step_overhead_seconds = 0.001
[[effect]]
kind = "serve"
class = "int8"
compute = 1.1
[[effect]]
kind = "serve"
engine = "vllm"
compute = 1.2
[[effect]]
kind = "serve"
engine = "vllm"
scope = "family:hopper"
compute = 1.25
step_overhead_seconds = 2
rows = 12
[[effect]]
kind = "serve"
engine = "vllm"
scope = "family:hopper"
class = "fp8"
compute = 1.2
[[error]]
kind = "serve"
compute = 0.3
stream = 0.2
[[error]]
kind = "serve"
engine = "vllm"
compute = 0.5
stream = 0.1
[[strange]]
kind = "serve"
compute = 0.6
stream = 0.4
)"};

class Calibrations : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* text : kSheets) {
      auto sheet = parse_fact_sheet(text, "test.toml");
      ASSERT_TRUE(sheet);
      store.add(*sheet);
    }
    auto loaded = Calibration::load(store);
    ASSERT_TRUE(loaded);
    calibration = *loaded;
    known.family = "hopper";
    known.vendor = "maker";
    cousin.family = "ampere";
    cousin.vendor = "maker";
    stranger.family = stranger.vendor = "unknown";
  }
  const MatrixCoefficients& half(const OperatorCoefficients& c) {
    return c.matrix[static_cast<std::size_t>(MathClass::half)];
  }
  FactStore store;
  Calibration calibration;
  Accelerator known, cousin, stranger;
};

TEST_F(Calibrations, OneCodeForTwoCapabilities) {
  EXPECT_EQ(kernel_family("blackwell_ultra"), "blackwell");
  EXPECT_EQ(kernel_family("hopper"), "hopper");
  auto sheet = parse_fact_sheet(R"(
kind = "calibration"
id = "operators/blackwell"
source = "test"
date = "2026-01"
half = { ceiling = 0.7, error = 0.1, k_half = 20 }
)",
                                "test.toml");
  ASSERT_TRUE(sheet);
  store.add(*sheet);
  auto loaded = Calibration::load(store);
  ASSERT_TRUE(loaded);
  Accelerator ultra;
  ultra.family = "blackwell_ultra";
  ultra.vendor = "maker";
  const auto c = *loaded->operators(ultra);
  EXPECT_EQ(half(c).ceiling, 0.7);
  EXPECT_EQ(c.stream.ceiling, 0.75);    // of the vendor, before all others
  EXPECT_EQ(c.basis, Basis::analytic);  // nothing was timed on it
}

TEST_F(Calibrations, FamilyThenVendorThenAny) {
  auto own = *calibration.operators(known);
  EXPECT_EQ(half(own).ceiling, 0.8);
  EXPECT_EQ(half(own).k_half, 50);
  EXPECT_EQ(own.stream.ceiling, 0.75);  // the family has none, the vendor has
  EXPECT_EQ(own.attention.decode_ceiling, 0.6);
  EXPECT_EQ(own.basis, Basis::calibrated);
  EXPECT_EQ(own.sheet, "operators/hopper");
  auto near = *calibration.operators(cousin);
  EXPECT_EQ(half(near).ceiling, 0.5);
  EXPECT_EQ(near.stream.ceiling, 0.75);
  EXPECT_EQ(near.basis, Basis::analytic);
  auto far = *calibration.operators(stranger);
  EXPECT_EQ(far.stream.ceiling, 0.7);
  EXPECT_EQ(far.sheet, "operators/any");
}

TEST_F(Calibrations, AClassNeverMeasuredIsLessCertain) {
  auto c = *calibration.operators(stranger);
  EXPECT_EQ(c.matrix[static_cast<std::size_t>(MathClass::fp8)].ceiling, 0.4);
  const auto& fp4 = c.matrix[static_cast<std::size_t>(MathClass::fp4)];
  EXPECT_EQ(fp4.ceiling, 0.4);  // as the narrow class that was measured
  EXPECT_EQ(fp4.error, 0.6);
}

TEST_F(Calibrations, EngineCoefficientsAreProductsOfEffects) {
  auto at = [&](std::string_view engine, const Accelerator& a, std::string_view cls) {
    auto c = calibration.engine(engine_subject(engine, a, false, cls, Format::unknown));
    EXPECT_TRUE(c);
    return c ? *c : EngineCoefficients{};
  };
  EXPECT_NEAR(at("vllm", known, "fp8").compute_factor, 0.5 * 1.2 * 1.25 * 1.2, 1e-12);
  EXPECT_NEAR(at("vllm", known, "half").compute_factor, 0.5 * 1.2 * 1.25, 1e-12);
  EXPECT_NEAR(at("vllm", stranger, "half").compute_factor, 0.5 * 1.2, 1e-12);
  EXPECT_NEAR(at("vllm", stranger, "int8").compute_factor, 0.5 * 1.1 * 1.2, 1e-12);
  EXPECT_NEAR(at("newcomer", known, "half").compute_factor, 0.5, 1e-12);
  EXPECT_NEAR(at("vllm", known, "half").step_overhead_seconds, 0.002, 1e-12);
  EXPECT_TRUE(at("vllm", known, "half").end_to_end);
  // Measured on this engine and family, or put together from parts.
  EXPECT_EQ(at("vllm", known, "half").basis, Basis::calibrated);
  EXPECT_EQ(at("vllm", cousin, "half").basis, Basis::analytic);
  // As every sheet of the room: cited below "calibration/".
  EXPECT_EQ(at("vllm", known, "half").sheet, "engines#serve/vllm/family:hopper//");
  // Nothing stands in for training here, and that is said.
  auto none = calibration.engine(engine_subject("vllm", known, true, "half", Format::unknown));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::missing_fact);
}

TEST_F(Calibrations, ErrorsAreLargerWhereTheEngineIsAStranger) {
  auto own = *calibration.engine(engine_subject("vllm", known, false, "half", Format::unknown));
  EXPECT_EQ(own.compute_error, 0.5);
  EXPECT_EQ(own.stream_error, 0.1);
  auto far = *calibration.engine(engine_subject("vllm", stranger, false, "half", Format::unknown));
  EXPECT_EQ(far.compute_error, 0.6);
  EXPECT_EQ(far.stream_error, 0.4);
}

TEST_F(Calibrations, ProductsStayPhysicallyPossible) {
  EngineTable t;
  EngineSubject s;
  s.engine = "e";
  for (const EngineLevel level : {EngineLevel::kind, EngineLevel::engine}) {
    EngineEffect& e = t.effects[effect_key(s, level)];
    e.factor.fill(1.4);
  }
  for (const ParameterInfo& p : engine_parameters()) {
    const double v = (*t.of(s)).*p.field;
    EXPECT_LE(v, p.high) << p.name;
    EXPECT_GE(v, p.low) << p.name;
  }
}

// An engine never measured takes what is known of the kernels that it shares; training has none.
TEST_F(Calibrations, EnginesOfOneLibraryShareEffects) {
  EngineTable t;
  t.effects[effect_key({}, EngineLevel::kind)].factor[0] = 0.5;
  const EngineSubject in = engine_subject("new", known, false, "half", Format::f16, "ggml");
  EXPECT_EQ(effect_key(in, EngineLevel::library_class), "serve/library:ggml//half/");
  t.effects[effect_key(in, EngineLevel::library)].factor[0] = 0.8;
  const EngineSubject out = engine_subject("new", known, false, "half", Format::f16);
  EXPECT_EQ(effect_key(out, EngineLevel::library), "");
  EXPECT_NEAR(t.of(in)->compute_factor, 0.4, 1e-12);
  EXPECT_NEAR(t.of(out)->compute_factor, 0.5, 1e-12);
  EXPECT_EQ(engine_subject("new", known, true, "half", Format::f16, "ggml").library, "");
}

// What was fitted on one GeForce card holds for the next family in part, in inference of networks.
TEST_F(Calibrations, GeForceBoardsShareAnEffect) {
  Accelerator card = known;
  card.family = "ada_geforce";
  EngineTable t;
  const EngineSubject seen = engine_subject("e", card, false, "graph-half", Format::f16);
  EXPECT_EQ(effect_key(seen, EngineLevel::line), "serve-graph//line:geforce//");
  t.effects[effect_key(seen, EngineLevel::kind)].factor[0] = 0.5;
  t.effects[effect_key(seen, EngineLevel::line)].factor[0] = 1.2;
  card.family = "ampere_geforce";
  EXPECT_NEAR(t.of(engine_subject("e", card, false, "graph-half", Format::f16))->compute_factor,
              0.6, 1e-12);
  card.family = "ampere_pro";
  EXPECT_NEAR(t.of(engine_subject("e", card, false, "graph-half", Format::f16))->compute_factor,
              0.5, 1e-12);
  card.family = "ada_geforce";
  EXPECT_EQ(
      effect_key(engine_subject("e", card, true, "graph-half", Format::f16), EngineLevel::line),
      "");
}

TEST_F(Calibrations, LinksFallBackByReach) {
  EXPECT_EQ(calibration.link("nvlink4", false)->ceiling, 0.9);
  EXPECT_EQ(calibration.link("nvlink4", false)->basis, Basis::calibrated);
  EXPECT_EQ(calibration.link("nvlink9", false)->ceiling, 0.7);
  EXPECT_EQ(calibration.link("nvlink9", true)->ceiling, 0.6);
  EXPECT_EQ(calibration.link("nvlink9", true)->basis, Basis::analytic);
}

TEST_F(Calibrations, MovedUpIsFasterEverywhere) {
  auto base = *calibration.operators(known);
  for (double sigmas : {0.5, 1.28, 3.0}) {
    auto up = *calibration.moved(ErrorGroup::matrix, sigmas).operators(known);
    auto down = *calibration.moved(ErrorGroup::matrix, -sigmas).operators(known);
    EXPECT_NEAR(half(up).ceiling, 0.8 * (1 + sigmas * 0.1), 1e-12);
    EXPECT_NEAR(half(down).ceiling, 0.8 / (1 + sigmas * 0.1), 1e-12);
    EXPECT_EQ(up.stream.ceiling, base.stream.ceiling);
    // A cost stays positive however uncertain it is (0.9 here) and falls when things get faster.
    auto fast = *calibration.moved(ErrorGroup::host, sigmas).operators(known);
    auto slow = *calibration.moved(ErrorGroup::host, -sigmas).operators(known);
    EXPECT_NEAR(fast.launch_seconds, 4e-6 / (1 + sigmas * 0.9), 1e-15);
    EXPECT_NEAR(slow.launch_seconds, 4e-6 * (1 + sigmas * 0.9), 1e-15);
  }
  auto link = *calibration.moved(ErrorGroup::link, 1).link("any", false);
  EXPECT_NEAR(link.ceiling, 0.7 * 1.25, 1e-12);
  EXPECT_NEAR(link.latency_seconds, 1e-6 / 1.25, 1e-15);
  auto engine = *calibration.moved(ErrorGroup::host, 1)
                     .engine(engine_subject("vllm", known, false, "half", Format::unknown));
  EXPECT_NEAR(engine.compute_factor, 0.75 * std::exp(0.5), 1e-12);
  EXPECT_NEAR(engine.step_overhead_seconds, 0.002 * std::exp(-0.1), 1e-12);
}

TEST_F(Calibrations, PowerLimitsTakeTheClockDown) {
  Accelerator card = test::round_card();
  Cluster c;
  c.accelerator = &card;
  c.intra.one_way = gigabytes_per_second(100);
  const double whole =
      make_device_model(c, calibration, "vllm", false, "half", Format::bf16)->power_scale;
  c.card.power_limit = watts(200);  // of 400
  auto d = make_device_model(c, calibration, "vllm", false, "half", Format::bf16);
  ASSERT_TRUE(d);
  EXPECT_NEAR(d->power_scale, whole * std::cbrt(0.5), 1e-12);
  c.card.power_limit = watts(500);
  EXPECT_EQ(make_device_model(c, calibration, "vllm", false, "half", Format::bf16)->power_scale,
            whole);
  c.card.power_limit.reset();
  // An H100 on PCIe has 350 W for 756 TFLOP/s, on SXM 700 W for 989; another vendor's card keeps 1.
  card.family = "hopper";
  auto peak = [&](double t) {
    card.peak[static_cast<std::size_t>(MathMode::bf16_matrix)] = teraflops_per_second(t);
  };
  auto scale = [&] {
    return make_device_model(c, calibration, "vllm", false, "half", Format::bf16)->power_scale;
  };
  peak(756), card.board_power = watts(350);
  EXPECT_NEAR(scale(), std::cbrt((350. / 756) / (700. / 989)), 1e-12);
  peak(989), card.board_power = watts(700);
  EXPECT_NEAR(scale(), 1, 1e-12);
  card.vendor = "amd";
  EXPECT_EQ(scale(), 1);
  // Sums in FP16 at twice the rate have half the watts each: 2^(-1/3) of the clock.
  card.vendor = "nvidia";
  card.peak[static_cast<std::size_t>(MathMode::fp16_matrix_fp16_accumulate)] =
      teraflops_per_second(2 * 989);
  auto halves = *make_device_model(c, calibration, "vllm", false, "half", Format::bf16);
  accumulate_in_half(halves);
  EXPECT_NEAR(halves.power_scale, std::cbrt(0.5), 1e-12);
  EXPECT_EQ(halves.unit[static_cast<std::size_t>(MathClass::half)].peak, 2 * 989e12);
  card.peak = {};
  auto none = make_device_model(c, calibration, "vllm", false, "half", Format::bf16);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::missing_fact);
}

TEST(CalibrationData, EveryCoefficientIsPlausible) {
  FactStore store = *FactStore::embedded();
  Calibration c = *Calibration::load(store);
  for (const FactSheet* s : store.of_kind("calibration")) {
    if (s->id.rfind("operators/", 0) != 0) continue;
    Accelerator a;
    a.family = s->id.substr(10);
    auto ops = c.operators(a);
    ASSERT_TRUE(ops) << s->id;
    for (const MatrixCoefficients& m : ops->matrix) {
      EXPECT_GT(m.ceiling, 0.05) << s->id;
      EXPECT_LE(m.ceiling, 1.15) << s->id;
      EXPECT_GE(m.sharpness, 1) << s->id;
    }
    EXPECT_GT(ops->stream.ceiling, 0.3) << s->id;
    EXPECT_LE(ops->stream.ceiling, 1.1) << s->id;
    EXPECT_LT(ops->launch_seconds, 1e-4) << s->id;
  }
}

}  // namespace
}  // namespace trigon
