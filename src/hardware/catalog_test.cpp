#include "hardware/catalog.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "hardware/names.hpp"
#include "hardware/systems.hpp"

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
const Accelerator& card(std::string_view name) { return **hardware().accelerators.find(name); }
std::string hint_of(const Error& e) {
  return e.hint && !e.hint->args.empty() ? std::get<std::string>(e.hint->args[0]) : "";
}

TEST(Names, CanonicalFormIgnoresCaseAndBlanks) {
  EXPECT_EQ(normalised_name("RTX 4090"), normalised_name("rtx-4090"));
  EXPECT_EQ(normalised_name("RTX_4090"), normalised_name("rtx4090"));
  EXPECT_NE(normalised_name("rtx-4090"), normalised_name("rtx-4090-d"));
}

TEST(Names, DistanceCountsEdits) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(nearest_name("h10-sxm", {"a100-sxm", "h100-sxm", "l4"}), "h100-sxm");
  EXPECT_EQ(nearest_name("zzzzzzzz", {"a100-sxm", "l4"}), std::nullopt);
}

TEST(Catalog, HoldsTheGatheredAccelerators) {
  EXPECT_GE(hardware().accelerators.all().size(), 206u);
  for (const char* vendor : {"nvidia", "amd", "intel", "google", "aws", "apple", "huawei"})
    EXPECT_TRUE(std::any_of(hardware().accelerators.all().begin(),
                            hardware().accelerators.all().end(),
                            [&](const Accelerator& a) { return a.vendor == vendor; }))
        << vendor;
}

TEST(Catalog, ReadsTheFactsOfAnH100) {
  const Accelerator& a = card("h100-sxm");
  EXPECT_EQ(a.id, "h100-sxm-80gb");
  EXPECT_EQ(a.family, "hopper");
  EXPECT_DOUBLE_EQ(a.memory_bandwidth.in_base(), 3350e9);
  EXPECT_DOUBLE_EQ(a.memory_reported->in_base(), 81559.0 * 1048576);
  EXPECT_DOUBLE_EQ(a.peak_of(MathMode::bf16_matrix)->in_base(), 989.4e12);
  EXPECT_DOUBLE_EQ(a.peak_of(MathMode::fp16_vector)->in_base(), 134e12);
  EXPECT_FALSE(a.peak_of(MathMode::fp4_matrix));
  EXPECT_EQ(a.peer_link.topology, PeerTopology::fabric_switch);
  EXPECT_DOUBLE_EQ(a.peer_link.one_way.in_base(), 450e9);
  EXPECT_DOUBLE_EQ(a.peer_link.both_ways.in_base(), 900e9);
  EXPECT_NEAR(a.pcie_one_way->in_base(), 63e9, 0.1e9);
  EXPECT_EQ(*a.mig_max_instances, 7);
}

TEST(Catalog, KnowsTheTrapsOfTheData) {
  // MI300X: 163.4 is the matrix figure.
  EXPECT_DOUBLE_EQ(card("mi300x").peak_of(MathMode::fp32_matrix)->in_base(), 163.4e12);
  EXPECT_DOUBLE_EQ(card("mi300x").peak_of(MathMode::fp32_vector)->in_base(), 81.7e12);
  // RX 7000: the vector FP16 figure of the source is half.
  EXPECT_DOUBLE_EQ(card("rx-7900-xtx").peak_of(MathMode::fp16_vector)->in_base(), 122.88e12);
  // RDNA 2 multiplies integers on its vector units.
  EXPECT_FALSE(card("rx-6900-xt").peak_of(MathMode::int8_matrix));
  EXPECT_DOUBLE_EQ(card("rx-6900-xt").peak_of(MathMode::int8_vector)->in_base(), 92.16e12);
  // GeForce: half rate when accumulating in FP32.
  EXPECT_NEAR(card("rtx-4090").peak_of(MathMode::fp16_matrix_fp32_accumulate)->in_base() * 2,
              card("rtx-4090").peak_of(MathMode::fp16_matrix_fp16_accumulate)->in_base(), 1e9);
  EXPECT_NE(card("l40").family, card("l40s").family);
  EXPECT_TRUE(card("rubin").announced);
}

TEST(Catalog, NamesResolveExactlyOrByAlias) {
  EXPECT_EQ(card("RTX 4090").id, "rtx-4090");
  EXPECT_EQ(card("NVIDIA GeForce RTX 4090").id, "rtx-4090");
  EXPECT_EQ(card("pci:10de:2684").id, "rtx-4090");
  EXPECT_EQ(card("NVIDIA H100 80GB HBM3").id, "h100-sxm-80gb");
  EXPECT_EQ(card("NVIDIA A100-SXM4-80GB").id, "a100-sxm-80gb");
  EXPECT_EQ(card("RTX4090-24GB").id, "rtx-4090");
  EXPECT_EQ(card("h200").id, "h200-sxm-141gb");
  // Not by part: a laptop card must not get its namesake's facts.
  EXPECT_FALSE(hardware().accelerators.find("NVIDIA GeForce RTX 4090 Laptop GPU"));
}

TEST(Catalog, AnAmbiguousNameListsItsCandidates) {
  auto r = hardware().accelerators.find("a100-80gb", "--on");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::ambiguous_name);
  EXPECT_EQ(r.error().where, "--on");
  EXPECT_EQ(hint_of(r.error()), "a100-sxm-80gb, a100-pcie-80gb");
  auto all = hardware().accelerators.resolve_all("a100-80gb");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 2u);
}

TEST(Catalog, AnUnknownNameOffersTheNearest) {
  auto r = hardware().accelerators.find("rtx-4091");
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code, ErrorCode::unknown_name);
  EXPECT_EQ(hint_of(r.error()), "rtx-4090");
  auto outside = hardware().accelerators.find("H800-NVL-80GB");
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().what.id, message_id(HardwareMessage::outside_catalogue));
}

TEST(Catalog, ReportedMemoryIsExactOrAnInterval) {
  Range known = hardware().accelerators.usable_memory_reported(card("rtx-4090"));
  EXPECT_EQ(known.low, known.high);
  EXPECT_DOUBLE_EQ(known.value, 24564.0 * 1048576);
  Range guessed = hardware().accelerators.usable_memory_reported(card("rtx-4090-d"));
  EXPECT_LT(guessed.low, guessed.high);
  EXPECT_LE(guessed.low, known.value);  // same family, same nominal size
  EXPECT_GE(guessed.high, known.value);
  EXPECT_LE(guessed.low, guessed.value);
  EXPECT_LE(guessed.value, guessed.high);
  // No AMD card has a known figure: all cards' ratios are taken.
  Range amd = hardware().accelerators.usable_memory_reported(card("mi300x"));
  EXPECT_GT(amd.low, 0.9 * 192e9);
  EXPECT_LT(amd.high, 1.08 * 192e9);
}

// An RTX 4090 reports 24,564 MiB, of which the driver keeps 480; an L40S comes with error
// correction on, which takes a sixteenth; stacked memory has it beside the data.
TEST(Catalog, ProgramsFindWhatTheDriverLeaves) {
  const AcceleratorCatalog& all = hardware().accelerators;
  CardState state;
  EXPECT_DOUBLE_EQ(all.program_memory(card("rtx-4090"), state).value, (24564.0 - 480) * 1048576);
  state.memory_used = gibibytes(2);
  EXPECT_DOUBLE_EQ(all.program_memory(card("rtx-4090"), state).value,
                   (24564.0 - 480 - 2048) * 1048576);
  state = {};
  const double with = all.program_memory(card("l40s"), state).value;
  state.ecc = true;
  EXPECT_DOUBLE_EQ(all.program_memory(card("l40s"), state).value, with);
  state.ecc = false;
  const double kept = card("l40s").memory_reserved.in_base();
  EXPECT_DOUBLE_EQ(all.program_memory(card("l40s"), state).value, (with + kept) * 16 / 15 - kept);
  const double stacked = all.program_memory(card("h100-sxm-80gb"), {}).value;
  EXPECT_DOUBLE_EQ(all.program_memory(card("h100-sxm-80gb"), state).value, stacked);
  state.memory = gibibytes(79);
  EXPECT_DOUBLE_EQ(all.program_memory(card("h100-sxm-80gb"), state).value, 79 * kGi);
}

// Before CUDA 11.7 a program's kernels were all loaded at once; readings name their sources.
TEST(Catalog, ContextsByVersionOfCuda) {
  const Accelerator& ga102 = card("rtx-3090");
  EXPECT_EQ(ga102.context_with(std::nullopt), mebibytes(256));
  EXPECT_EQ(ga102.context_with(CudaVersion{11, 7}), mebibytes(256));
  EXPECT_EQ(ga102.context_with(CudaVersion{12, 8}), mebibytes(256));
  EXPECT_EQ(ga102.context_with(CudaVersion{11, 6}), mebibytes(1685));
  EXPECT_EQ(ga102.context_with(CudaVersion{11, 0}), mebibytes(1486));
  EXPECT_EQ(ga102.context_with(CudaVersion{10, 2}), mebibytes(1486));
  EXPECT_EQ(card("gtx-1080").context_with(std::nullopt), std::nullopt);
  EXPECT_EQ(card("gtx-1080").context_with(CudaVersion{10, 1}), mebibytes(719));
  // No reading of its own: what torch's kernels took somewhere.
  const Accelerator& a100 = card("a100-sxm-80gb");
  EXPECT_EQ(a100.context_with(CudaVersion{11, 3}), *a100.context + mebibytes(362));
  EXPECT_EQ(card("b200").context_with(std::nullopt), mebibytes(612));
  EXPECT_TRUE(card("mi300x").older_contexts.empty());
}

TEST(Catalog, SystemsAndLinks) {
  auto dgx = hardware().find_system("DGX H100");
  ASSERT_TRUE(dgx);
  EXPECT_EQ((*dgx)->accelerator->id, "h100-sxm-80gb");
  EXPECT_EQ((*dgx)->count, 8);
  EXPECT_DOUBLE_EQ((*dgx)->inter_one_way->in_base(), 50e9);
  auto two = hardware().find_system("dgx-a100");
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().code, ErrorCode::ambiguous_name);
  EXPECT_DOUBLE_EQ((*hardware().find_link("ib400"))->link.one_way.in_base(), 50e9);
  EXPECT_EQ(hint_of(hardware().find_link("ib4000").error()), "ib400");
  EXPECT_EQ((*hardware().find_system("gb200-nvl72"))->count, 72);
}

TEST(Catalog, EveryFactHasASourceAndADate) {
  for (const FactSheet& s : facts().sheets()) {
    EXPECT_FALSE(s.source.empty()) << s.where;
    EXPECT_FALSE(s.date.empty()) << s.where;
  }
}

}  // namespace
}  // namespace trigon
