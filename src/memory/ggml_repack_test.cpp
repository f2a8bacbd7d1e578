// Copies of weights in the layout of the CPU's kernels, by hand and by a log.
#include <gtest/gtest.h>

#include "memory/memory_model.hpp"
#include "memory/test_models.hpp"

namespace trigon {
namespace {

EnginePolicy ggml() {
  EnginePolicy e;
  e.id = "llama.cpp";
  e.serves = true;
  e.compute_buffer = e.embedding_on_host = true;
  e.micro_batch_tokens = 512;
  e.repacked_formats = {"q4_0@neon", "q6_k@neon", "q4_0@avx2"};
  return e;
}

RankMemory on(const Accelerator& card, const Model& model, const EnginePolicy& engine, Plan plan) {
  Cluster c = test::cluster(1);
  c.accelerator = &card;
  plan.weights = model.weight_format;
  auto m = MemoryModel::prepare(model, test::serve(2047, 1), c, engine, test::exactly_gib(80));
  NoRecord quiet;
  return m->evaluate(plan, 0, quiet);
}

Accelerator device(DeviceKind kind, const char* vendor) {
  Accelerator a;
  a.kind = kind;
  a.vendor = vendor;
  return a;
}

// llama.cpp issue 19578, b8018 on Arm: CPU_REPACK 1513.16 MiB. The file was made with an importance
// matrix, so ffn_down of the first 26 / 8 layers is Q4_1, which has no such layout.
TEST(Repacked, Gemma2OnArmAsItsLogSays) {
  Model m = test::decoder(
      "gemma-2-2b", {26, 2304, 8, 4, 256, 9216, 256000, true, std::nullopt, 0, 0, Format::q4_0});
  Stack& stack = std::get<Stack>(m.components[0].body);
  stack.embedding->format = Format::q6_k;
  Layer first = stack.runs[0].layer;
  for (SubLayer& part : first.parts)
    if (auto* mlp = std::get_if<Mlp>(&part)) mlp->down.format = Format::q4_1;
  stack.runs = {{first, 3}, {stack.runs[0].layer, 23}};
  const RankMemory r = on(device(DeviceKind::cpu, "ampere"), m, ggml(), Plan{});
  EXPECT_NEAR(r[MemoryTerm::gathered] / kMi, 1513.16, 0.005);
  // With AVX2 there is no layout for the head's type.
  const RankMemory x86 = on(device(DeviceKind::cpu, "intel"), m, ggml(), Plan{});
  EXPECT_NEAR((r[MemoryTerm::gathered] - x86[MemoryTerm::gathered]) / 1e6, 483.84, 0.001);
}

// 20 of 32 layers stay on the host: four matrices of 4096 x 4096 and three of 4096 x 11008 each, in
// 18 bytes for 32 weights.
TEST(Repacked, LayersOnTheHostOnlyWithoutPinnedMemory) {
  const Model m = test::decoder(
      "llama-2-7b", {32, 4096, 32, 32, 128, 11008, 32000, false, std::nullopt, 0, 0, Format::q4_0});
  Plan p;
  p.gpu_layers = 12;
  EnginePolicy e = ggml();
  const Accelerator card = device(DeviceKind::gpu, "nvidia");
  EXPECT_EQ(on(card, m, e, p).host.repacked, 0);
  e.repacks_beside_cards = true;
  const RankMemory r = on(card, m, e, p);
  EXPECT_EQ(r.host.repacked, 20 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008) * 18 / 32);
  EXPECT_EQ(r[MemoryTerm::gathered], 0);
  EXPECT_GE(r.host.total(), 2 * r.host.repacked);
  e.repacks_beside_cards = false;
  EXPECT_GT(on(device(DeviceKind::gpu, "apple"), m, e, p).host.repacked, 0);
}

TEST(Repacked, TypesWithoutSuchALayoutAreNotCopied) {
  const Model m = test::decoder(
      "llama-2-7b", {32, 4096, 32, 32, 128, 11008, 32000, false, std::nullopt, 0, 0, Format::q5_1});
  EXPECT_EQ(on(device(DeviceKind::cpu, "intel"), m, ggml(), Plan{})[MemoryTerm::gathered], 0);
}

}  // namespace
}  // namespace trigon
