// What Megatron-LM's own tests measured (tests/functional_tests/test_cases/gpt at d98e8a64dd,
// mem-allocated-bytes and mem-max-allocated-bytes of the last rank), beside sums done by hand.

#include <gtest/gtest.h>

#include "hardware/accelerator.hpp"
#include "memory/memory_model.hpp"
#include "memory/test_models.hpp"

namespace trigon {
namespace {

constexpr double kMebi = 1024.0 * 1024.0;

// Transformer Engine's layers; states and workspaces as data/engines/megatron-lm.toml has them.
EnginePolicy megatron() {
  EnginePolicy e;
  e.id = "megatron-lm";
  e.trains = true;
  e.autograd = Autograd::fused;
  e.dropout_masks = e.gradients_persist = e.attention_output_copy = true;
  e.vocabulary_padding = 128;
  e.loss_bytes_per_logit = 6;
  e.blas_threads = 2;
  e.blas_workspace = mebibytes(8.125);
  e.blas_workspace_hopper = e.blas_workspace_deterministic = mebibytes(32);
  e.kernel_workspace = mebibytes(4);
  e.kernel_workspace_hopper = mebibytes(32);
  e.expert_streams = 4;
  e.deterministic = true;
  return e;
}

// 12 layers of 512 with 8 heads, the 50,257 tokens of GPT-2, 1,024 learned positions.
Model small_gpt() {
  Model m = test::decoder("gpt", {12, 512, 8, 8, 64, 2048, 50257, true});
  Stack& s = std::get<Stack>(m.components[0].body);
  s.positions = test::linear(1024, 512, Split::replicated);
  Mlp& mlp = std::get<Mlp>(s.runs[0].layer.parts[3]);
  mlp.gated = false;
  mlp.gate.reset();
  return m;
}

RankMemory trained(const Model& m, const EnginePolicy& e, const Plan& p, double capability,
                   int stage = 0) {
  Train job;
  job.sequence = 1024;
  job.tokens = 32.0 * 1024;
  job.global_batch = 32;
  Accelerator card;
  card.compute_capability = capability;
  Cluster c = test::cluster(8);
  c.accelerator = &card;
  auto model = MemoryModel::prepare(m, job, c, e, test::exactly_gib(80));
  EXPECT_TRUE(model.has_value());
  NoRecord quiet;
  return model->evaluate(p, stage, quiet);
}

double steady(const RankMemory& r) {
  return r[MemoryTerm::weights] + r[MemoryTerm::gradients] + r[MemoryTerm::master_weights] +
         r[MemoryTerm::optimizer] + r[MemoryTerm::workspaces];
}

Plan eight_cards() {
  Plan p;
  p.data = 8;
  p.zero = 1;
  p.micro_batch = 4;
  p.accumulation = 1;
  p.recipe = TrainRecipe::mixed_fp32_grad;
  return p;
}

TEST(TrainingMemory, DataParallelGptWithUnfusedAttention) {
  EnginePolicy e = megatron();
  e.flash_attention = false;
  const RankMemory a100 = trained(small_gpt(), e, eight_cards(), 8);
  // 64.1 M parameters at 6 + 12 / 8 bytes, two cuBLAS workspaces of 32 MiB and one of 4 MiB.
  EXPECT_NEAR(steady(a100), 0.5142 * kGi, 2 * kMebi);
  EXPECT_NEAR(a100.total(), 4.3521 * kGi, 4 * kMebi);
  EXPECT_NEAR(steady(trained(small_gpt(), e, eight_cards(), 9)), 0.5416 * kGi, 2 * kMebi);
  // gpt3_mcore_te_tp1_pp1_frozen_resume_torch_dist_dist_optimizer: the same with flash attention.
  EXPECT_NEAR(trained(small_gpt(), megatron(), eight_cards(), 8).total(), 2.5255 * kGi, 4 * kMebi);
}

TEST(TrainingMemory, InterleavedLastStage) {
  // gpt3_mcore_te_tp1_pp4_vp1: three chunks of one layer, nine chunks in flight.
  EnginePolicy e = megatron();
  e.flash_attention = false;
  Plan p = eight_cards();
  p.data = 2;
  p.pipeline = 4;
  p.virtual_stages = 3;
  p.accumulation = 4;
  p.zero = 0;
  const RankMemory last = trained(small_gpt(), e, p, 8, 3);
  EXPECT_NEAR(last.total(), 3.8396 * kGi, 0.005 * 3.8396 * kGi);
  // ..._tunable_overlap takes five micro-batches in a row: eleven chunks.
  p.interleave_group = p.accumulation = 5;
  EXPECT_NEAR(trained(small_gpt(), e, p, 8, 3).total(), 4.2811 * kGi, 0.01 * 4.2811 * kGi);
}

TEST(TrainingMemory, PartialOptimizerGroups) {
  Plan p = eight_cards(), halves = p;
  halves.optimizer_groups = 2;
  const RankMemory whole = trained(small_gpt(), megatron(), p, 8);
  const RankMemory two = trained(small_gpt(), megatron(), halves, 8);
  EXPECT_DOUBLE_EQ(two[MemoryTerm::optimizer], 2 * whole[MemoryTerm::optimizer]);
  EXPECT_DOUBLE_EQ(two[MemoryTerm::gradients], whole[MemoryTerm::gradients]);
}

TEST(TrainingMemory, LastStageLayers) {
  // gpt3_mcore_te_tp1_pp4_vp1_uneven_pipeline: 2 + 4 + 4 + 2 layers.
  Plan p = eight_cards();
  p.data = 2;
  p.pipeline = 4;
  p.accumulation = 4;
  p.zero = 0;
  p.last_stage_layers = 2;
  EnginePolicy e = megatron();
  e.flash_attention = false;
  EXPECT_NEAR(trained(small_gpt(), e, p, 8, 3).total(), 2.2223 * kGi, 0.01 * 2.2223 * kGi);
}

// DPO holds the model a second time, in 16 bit; micro-batches and states are the same.
TEST(TrainingMemory, AReferenceIsAFrozenCopy) {
  const Model m = small_gpt();
  Plan p = eight_cards();
  const RankMemory alone = trained(m, megatron(), p, 8);
  p.reference = true;
  const RankMemory both = trained(m, megatron(), p, 8);
  EXPECT_NEAR(both[MemoryTerm::weights], 2 * alone[MemoryTerm::weights], 1);
  EXPECT_EQ(both[MemoryTerm::optimizer], alone[MemoryTerm::optimizer]);
  EXPECT_EQ(both[MemoryTerm::activations], alone[MemoryTerm::activations]);
}

// 12 layers of 8 heads of 64, keys and values of 4 sequences of 1,024 tokens in 16 bit: 96 MiB
// until the forward pass returns; held outputs carry them and the 32-bit logits on.
TEST(TrainingMemory, CachesOfTheForwardPassAddToTheLoss) {
  const Model m = small_gpt();
  EnginePolicy e = megatron();
  Plan p = eight_cards();
  p.recompute = Recompute::full;
  const double plain = trained(m, e, p, 8).total();
  e.caches_in_training = true;
  const RankMemory with = trained(m, e, p, 8);
  EXPECT_NEAR(with.total() - plain, 96 * kMebi, 1);
  EXPECT_NEAR(with[MemoryTerm::kv_cache], 96 * kMebi, 1);
  e.outputs_held = true;  // the loss is the fullest moment still: it holds both anyway
  EXPECT_NEAR(trained(m, e, p, 8).total(), with.total(), 1);
}

}  // namespace
}  // namespace trigon
