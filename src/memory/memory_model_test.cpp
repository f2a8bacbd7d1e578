#include "memory/memory_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "memory/test_models.hpp"

namespace trigon {
namespace {

using test::cluster;
using test::exactly_gib;
using test::serve;

EnginePolicy plain_engine() {
  EnginePolicy e;
  e.id = "plain";
  e.serves = e.trains = true;
  e.autograd = Autograd::fused;
  return e;
}

MemoryModel prepared(const Model& m, const Job& job, int ranks, const EnginePolicy& e,
                     double gib = 80) {
  auto r = MemoryModel::prepare(m, job, cluster(ranks), e, exactly_gib(gib));
  EXPECT_TRUE(r.has_value());
  return *r;
}

RankMemory at(const MemoryModel& m, const Plan& p, int stage = 0) {
  NoRecord quiet;
  return m.evaluate(p, stage, quiet);
}

TEST(MemoryModel, Llama2WeightsAndCache) {
  // 6,738,415,616 parameters in 16 bit; 2 x 32 layers x 32 heads x 128 x 2 bytes a token.
  Model model = test::llama2_7b();
  MemoryModel m = prepared(model, serve(1024, 1024), 8, plain_engine());
  Plan p;
  RankMemory r = at(m, p);
  EXPECT_EQ(r[MemoryTerm::weights], 2.0 * 6738415616.0);
  EXPECT_EQ(r[MemoryTerm::kv_cache], 2048 * 512.0 * 1024);
}

TEST(MemoryModel, GroupedHeadsAreDividedThenRepeated) {
  Model model = test::llama31_8b();
  MemoryModel m = prepared(model, serve(1000, 24), 64, plain_engine());
  Plan p;
  EXPECT_EQ(at(m, p)[MemoryTerm::kv_cache], 1024 * 128.0 * 1024);
  p.tensor = 8;
  EXPECT_EQ(at(m, p)[MemoryTerm::kv_cache], 1024 * 16.0 * 1024);
  double eight = at(m, p)[MemoryTerm::weights];
  p.tensor = 16;  // 8 heads over 16 ranks: one on each, every head twice
  EXPECT_EQ(at(m, p)[MemoryTerm::kv_cache], 1024 * 16.0 * 1024);
  EXPECT_GT(at(m, p)[MemoryTerm::weights], eight / 2);
}

TEST(MemoryModel, LatentCacheIsWholeOnEveryRank) {
  Model model = test::deepseek_v3();
  MemoryModel m = prepared(model, serve(1000, 0), 16, plain_engine());
  Plan p;
  EXPECT_EQ(at(m, p)[MemoryTerm::kv_cache], 1000 * 576.0 * 61 * 2);
  p.tensor = 16;
  EXPECT_EQ(at(m, p)[MemoryTerm::kv_cache], 1000 * 576.0 * 61 * 2);
  // 671,026,419,200 parameters as published, in 16 bit here; the correction bias is 32-bit.
  p.tensor = 1;
  EXPECT_EQ(at(m, p)[MemoryTerm::weights], 2 * 671026419200.0 + 58 * 256 * 2.0);
}

TEST(MemoryModel, ExpertsFollowTheExpertDegree) {
  Model model = test::mixtral_8x7b();
  MemoryModel m = prepared(model, serve(100, 100), 8, plain_engine());
  Plan tensor;
  tensor.tensor = 8;
  Plan expert = tensor;
  expert.expert = 8;
  EXPECT_EQ(at(m, tensor)[MemoryTerm::weights], at(m, expert)[MemoryTerm::weights]);
  expert.expert = 3;  // ceil(8 / 3) = 3 experts on a rank, each divided by 8 / 3 -> 2
  EXPECT_GT(at(m, expert)[MemoryTerm::weights], at(m, tensor)[MemoryTerm::weights]);
}

TEST(MemoryModel, RanksThatDivideSequencesHoldAllButExperts) {
  Model model = test::mixtral_8x7b();
  EnginePolicy e = plain_engine();
  Plan one, group;
  group.tensor = group.expert = 8;
  group.micro_batch = 16;
  const double cache = at(prepared(model, serve(100, 100), 8, e), group)[MemoryTerm::kv_cache];
  const double whole = at(prepared(model, serve(100, 100), 8, e), one)[MemoryTerm::weights];
  e.attention_ranks = 8;
  const RankMemory rank = at(prepared(model, serve(100, 100), 8, e), group);
  const double experts = 32 * 8 * 3.0 * 4096 * 14336 * 2;
  EXPECT_DOUBLE_EQ(rank[MemoryTerm::weights], whole - experts * 7 / 8);
  // Two whole sequences take what an eighth of the heads of sixteen do.
  EXPECT_DOUBLE_EQ(rank[MemoryTerm::kv_cache], cache);
}

TEST(MemoryModel, PipelineStagesCarryTheirEnds) {
  Model model = test::llama31_8b();
  MemoryModel m = prepared(model, serve(100, 100), 8, plain_engine());
  Plan p;
  p.pipeline = 4;
  const double end = 128256.0 * 4096 * 2;
  RankMemory first = at(m, p, 0), middle = at(m, p, 1), last = at(m, p, 3);
  EXPECT_EQ(first[MemoryTerm::weights] - middle[MemoryTerm::weights], end);
  EXPECT_EQ(last[MemoryTerm::weights] - middle[MemoryTerm::weights], end + 4096 * 2);
  Plan whole;
  EXPECT_EQ(
      first[MemoryTerm::weights] + 2 * middle[MemoryTerm::weights] + last[MemoryTerm::weights],
      at(m, whole)[MemoryTerm::weights]);
}

TEST(MemoryModel, PoolRules) {
  Model model = test::llama31_8b();
  EnginePolicy e = plain_engine();
  e.pool = PoolRule::total_fraction;
  e.memory_fraction = 0.9;
  e.block_tokens = 16;
  e.max_batched_tokens = 2048;
  e.chunked_prefill = true;
  e.max_sequences = 256;
  MemoryModel m = prepared(model, serve(1000, 1000), 1, e);
  Plan p;
  RankMemory r = at(m, p);
  Capacity c = m.capacity(p);
  double rest = r.total() - r[MemoryTerm::kv_cache];
  EXPECT_DOUBLE_EQ(c.pool_bytes, 0.9 * 80 * kGi - rest);
  EXPECT_EQ(c.kv_tokens, std::floor(c.pool_bytes / (16 * 131072.0)) * 16);
  p.micro_batch = static_cast<int>(c.max_sequences);
  EXPECT_TRUE(m.fits(p));
  p.micro_batch += 1;
  EXPECT_FALSE(m.fits(p));

  e.pool = PoolRule::free_fraction;
  m = prepared(model, serve(1000, 1000), 1, e);
  EXPECT_NEAR(m.capacity(Plan{}).pool_bytes, 0.9 * (80 * kGi - rest), 1);
  e.pool = PoolRule::static_fraction;
  e.memory_fraction = 0.8;
  m = prepared(model, serve(1000, 1000), 1, e);
  EXPECT_NEAR(m.capacity(Plan{}).pool_bytes, 0.8 * 80 * kGi - r[MemoryTerm::weights], 1);
}

// A limit in tokens beside the fraction: the smaller pool holds, in whole pages.
TEST(MemoryModel, PoolsLimitedInTokens) {
  Model model = test::llama31_8b();  // 131,072 bytes of cache a token
  EnginePolicy e = plain_engine();
  e.pool = PoolRule::free_fraction;
  e.memory_fraction = 0.9;
  e.block_tokens = 32;
  e.max_batched_tokens = 2048;
  e.chunked_prefill = true;
  e.max_sequences = 256;
  const Capacity whole = prepared(model, serve(1000, 1000), 1, e).capacity(Plan{});
  e.pool_tokens = 20001;  // 625.03 blocks: 626, rounded up
  MemoryModel m = prepared(model, serve(1000, 1000), 1, e);
  Capacity c = m.capacity(Plan{});
  EXPECT_EQ(c.kv_tokens, 626 * 32.0);
  EXPECT_NEAR(c.pool_bytes, 626 * 32 * 131072.0, 1);
  EXPECT_EQ(c.max_sequences, 9);  // of 63 blocks each
  EXPECT_EQ(c.max_context, 626 * 32.0);
  Plan p;
  p.micro_batch = 9;
  EXPECT_TRUE(m.fits(p));
  p.micro_batch = 10;
  EXPECT_FALSE(m.fits(p));
  e.pool_tokens = 1'000'000'000;  // more than the fraction leaves
  EXPECT_DOUBLE_EQ(prepared(model, serve(1000, 1000), 1, e).capacity(Plan{}).pool_bytes,
                   whole.pool_bytes);
  e.pool = PoolRule::static_fraction;  // rounds down
  e.pool_tokens = 20001;
  EXPECT_EQ(prepared(model, serve(1000, 1000), 1, e).capacity(Plan{}).kv_tokens, 625 * 32.0);
}

TEST(MemoryModel, WindowsAreCappedOnlyByEnginesThatDo) {
  test::Shape s{10, 1024, 8, 8, 64, 2048, 1000};
  s.window = 512;
  Model model = test::decoder("windowed", s);
  EnginePolicy e = plain_engine();
  e.windows = WindowAllocator::full;
  Plan p;
  EXPECT_EQ(at(prepared(model, serve(4000, 96), 1, e), p)[MemoryTerm::kv_cache],
            4096.0 * 10 * 2 * 8 * 64 * 2);
  e.windows = WindowAllocator::capped;
  EXPECT_EQ(at(prepared(model, serve(4000, 96), 1, e), p)[MemoryTerm::kv_cache],
            512.0 * 10 * 2 * 8 * 64 * 2);
}

TEST(MemoryModel, AdamStatesAndZero) {
  Model model = test::llama2_7b();
  Train t;
  t.tokens = 1e9;
  t.sequence = 2048;
  t.global_batch = 64;
  EnginePolicy e = plain_engine();
  e.gradients_persist = true;
  MemoryModel m = prepared(model, t, 8, e);
  const double parameters = 6738415616.0;
  Plan p;
  p.data = 8;
  auto states = [&](int zero) {
    p.zero = zero;
    RankMemory r = at(m, p);
    return r[MemoryTerm::weights] + r[MemoryTerm::gradients] + r[MemoryTerm::master_weights] +
           r[MemoryTerm::optimizer];
  };
  EXPECT_DOUBLE_EQ(states(0), 16 * parameters);
  EXPECT_DOUBLE_EQ(states(1), (4 + 12.0 / 8) * parameters);
  EXPECT_DOUBLE_EQ(states(2), (2 + 14.0 / 8) * parameters);
  EXPECT_DOUBLE_EQ(states(3), 16.0 / 8 * parameters);
  p.recipe = TrainRecipe::mixed_fp32_grad;
  EXPECT_DOUBLE_EQ(states(0), 18 * parameters);
}

TEST(MemoryModel, PipelineKeepsMicroBatchesInFlight) {
  Model model = test::llama2_7b();
  Train t;
  t.sequence = 2048;
  EnginePolicy e = plain_engine();
  e.gradients_persist = true;
  MemoryModel m = prepared(model, t, 8, e);
  Plan p;
  p.pipeline = 4;
  p.accumulation = 16;
  // Middle stages differ only by the micro-batches they keep: 3 and 2 of 8 layers.
  double three = at(m, p, 1)[MemoryTerm::activations];
  double two = at(m, p, 2)[MemoryTerm::activations];
  const double layer =
      2048.0 * (2 * 2 * 4096 + 2 * 4096 + 8 * 4096 + 4 * 32 + 2 * 4096 + 3 * 2 * 11008);
  EXPECT_DOUBLE_EQ(three - two, 8 * layer);
  // Interleaving: the first stage keeps 1 + (p - 1) / (p v) times all layers.
  p.virtual_stages = 2;
  EXPECT_NEAR(at(m, p, 1)[MemoryTerm::activations] - at(m, p, 2)[MemoryTerm::activations],
              8 * layer, 1);
  p.accumulation = 1;
  p.virtual_stages = 1;
  EXPECT_DOUBLE_EQ(at(m, p, 1)[MemoryTerm::activations], at(m, p, 2)[MemoryTerm::activations]);
}

TEST(MemoryModel, QloraKeepsFourBitsAndSmallAdapters) {
  Model model = test::llama2_7b();
  FineTune f;
  f.method = TuneMethod::qlora;
  f.sequence = 512;
  f.rank = 16;
  MemoryModel m = prepared(model, f, 1, plain_engine());
  Plan p;
  RankMemory r = at(m, p);
  // 32 x (4 x 4096^2 + 3 x 4096 x 11008) matrices at 4.5 bits; embedding, head, norms stay.
  const double matrices = 32.0 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008);
  EXPECT_DOUBLE_EQ(r[MemoryTerm::weights], matrices * 4.5 / 8 + 2 * (6738415616.0 - matrices));
  // 39,976,960 adapter parameters of rank 16 on all linears, 16 bytes each.
  EXPECT_DOUBLE_EQ(r[MemoryTerm::adapters], 39976960.0 * 16);
  EXPECT_EQ(r[MemoryTerm::gradients], 0);
  EXPECT_EQ(r[MemoryTerm::optimizer], 0);
  EXPECT_EQ(r[MemoryTerm::gathered], 4096 * 11008 * 2.0);
}

TEST(MemoryModel, AdaptersAreDividedLikeOtherStates) {
  Model model = test::llama2_7b();
  FineTune f;
  f.sequence = 512;
  f.rank = 16;
  MemoryModel m = prepared(model, f, 4, plain_engine());
  Plan p;
  p.data = 4;
  const double parameters = 39976960;
  auto adapters = [&](int zero, TrainRecipe recipe) {
    p.zero = zero;
    p.recipe = recipe;
    return at(m, p)[MemoryTerm::adapters];
  };
  EXPECT_DOUBLE_EQ(adapters(0, TrainRecipe::mixed_16bit), 16 * parameters);
  EXPECT_DOUBLE_EQ(adapters(2, TrainRecipe::mixed_16bit), (2 + 14.0 / 4) * parameters);
  EXPECT_DOUBLE_EQ(adapters(3, TrainRecipe::mixed_16bit), 4 * parameters);
  EXPECT_DOUBLE_EQ(adapters(0, TrainRecipe::pure_bf16), 8 * parameters);
  // Copies of embedding and head, 131,072,000 parameters each, in 16 bit.
  f.form.ends = true;
  m = prepared(model, f, 4, plain_engine());
  EXPECT_DOUBLE_EQ(adapters(0, TrainRecipe::autocast_fp32), 16 * parameters + 8 * 262144000.0);
}

TEST(MemoryModel, FsdpKeepsWholeGradientsWhileItAccumulates) {
  Model model = test::llama2_7b();
  FineTune f;
  f.method = TuneMethod::full;
  f.sequence = 512;
  EnginePolicy e = plain_engine();
  e.gradients_persist = true;
  e.unsharded_accumulation = true;
  MemoryModel m = prepared(model, f, 4, e);
  Plan p;
  p.data = 4;
  p.zero = 3;
  const double bytes = 2 * 6738415616.0;
  EXPECT_DOUBLE_EQ(at(m, p)[MemoryTerm::gradients], bytes / 4);
  p.accumulation = 2;
  EXPECT_DOUBLE_EQ(at(m, p)[MemoryTerm::gradients], bytes);
  // A unit of frozen and adapted weights has gradients for all of it.
  f.method = TuneMethod::lora;
  f.rank = 8;
  e.mixed_units = true;
  MemoryModel tuned = prepared(model, f, 4, e);
  EXPECT_DOUBLE_EQ(at(tuned, p)[MemoryTerm::gradients], bytes);
  p.zero = 0;
  EXPECT_EQ(at(tuned, p)[MemoryTerm::gradients], 0);
}

// Llama-2-7B: 6,738,415,616 parameters, of them 131,072,000 each in embedding and head and 266,240
// in 65 norms.
TEST(MemoryModel, OptimizersKeepTheirMoments) {
  Model model = test::llama2_7b();
  FineTune t;
  t.method = TuneMethod::full;
  t.sequence = 128;
  MemoryModel m = prepared(model, t, 1, plain_engine());
  Plan p;
  p.recipe = TrainRecipe::fp32;
  auto moments = [&](Optimizer o) {
    p.optimizer = o;
    NoRecord quiet;
    return m.evaluate(p, 0, quiet)[MemoryTerm::optimizer];
  };
  const double all = 6738415616, table = 131072000, vectors = 266240;
  EXPECT_DOUBLE_EQ(moments(Optimizer::adamw), 8 * all);
  EXPECT_DOUBLE_EQ(moments(Optimizer::lion), 4 * all);
  EXPECT_DOUBLE_EQ(moments(Optimizer::sgd_momentum), 4 * all);
  EXPECT_EQ(moments(Optimizer::sgd), 0);
  EXPECT_EQ(moments(Optimizer::adamw_8bit_paged), 0);  // on the host until the step
  EXPECT_DOUBLE_EQ(moments(Optimizer::adamw_8bit),
                   2.03125 * (all - table - vectors) + 8 * (table + vectors));
  EXPECT_DOUBLE_EQ(moments(Optimizer::muon), 4 * (all + 2 * table + vectors));
  // Rows and columns: four square matrices and three of 4,096 x 11,008 a layer, two of the
  // vocabulary's.
  const double edges = 32.0 * (4 * 8192 + 3 * 15104) + 2 * 36096;
  EXPECT_DOUBLE_EQ(moments(Optimizer::adafactor), 4 * (edges + vectors));
  p.offload_optimizer = true;
  EXPECT_EQ(moments(Optimizer::adamw), 0);
}

TEST(MemoryModel, WhatIsOffloadedLiesInHostMemory) {
  Model model = test::llama2_7b();
  Train t;
  t.sequence = 128;
  const MemoryModel m = prepared(model, t, 8, plain_engine());
  const double all = 6738415616;
  NoRecord quiet;
  Plan p;
  p.recipe = TrainRecipe::mixed_16bit;
  EXPECT_EQ(m.evaluate(p, 0, quiet).host.total(), 0);
  // 16 bytes a parameter with gradients (deepspeed/runtime/zero/stage_1_and_2.py), 18 with weights.
  p.offload_optimizer = true;
  EXPECT_DOUBLE_EQ(m.evaluate(p, 0, quiet).host.states, 16 * all);
  p.zero = 3;
  p.offload_weights = true;
  EXPECT_DOUBLE_EQ(m.evaluate(p, 0, quiet).host.states, 18 * all);
  // Shards of all ranks of a node make one whole.
  p.data = 8;
  EXPECT_NEAR(m.evaluate(p, 0, quiet).host.states, 18 * all, 1);
  // Activations but those of two layers; beside an optimizer on the card its temporaries would
  // show.
  p = {};
  p.offload_optimizer = true;
  p.accumulation = 2;
  const double kept = m.evaluate(p, 0, quiet)[MemoryTerm::activations];
  p.offload_activations = true;
  const RankMemory r = m.evaluate(p, 0, quiet);
  EXPECT_GT(r.host.activations, 0);
  EXPECT_NEAR(r.host.activations, kept - r[MemoryTerm::activations], 1);
}

TEST(MemoryModel, DerivationsHoldTheirNumbers) {
  Model model = test::mixtral_8x7b();
  Train t;
  t.sequence = 4096;
  EnginePolicy e = plain_engine();
  e.loss_bytes_per_logit = 6;
  e.gradients_persist = true;
  MemoryModel m = prepared(model, t, 64, e);
  Plan p;
  p.tensor = 2;
  p.data = 8;
  p.expert = 4;
  p.zero = 3;
  p.recipe = TrainRecipe::mixed_fp32_grad;
  Record heard;
  RankMemory r = m.evaluate(p, 0, heard);
  auto symbol = [](const DerivationStep& s, std::string_view name) {
    for (const Symbol& x : s.symbols)
      if (name == x.name) return x.value;
    ADD_FAILURE() << "no symbol " << name;
    return 0.0;
  };
  auto sharded = [&](const DerivationStep& s) {
    return symbol(s, "dense") / symbol(s, "dense_shards") +
           symbol(s, "experts") / symbol(s, "expert_shards");
  };
  int seen = 0;
  for (const DerivationStep& s : heard.derivation.steps) {
    const std::string expression = s.formula->expression, name = s.formula->name;
    if (name == "memory.weights" && expression.find("dense_shards") != expression.npos) {
      EXPECT_DOUBLE_EQ(sharded(s) + symbol(s, "kept_whole"), r[MemoryTerm::weights]);
      EXPECT_EQ(symbol(s, "expert_shards"), 2);
    } else if (name == "memory.optimizer") {
      const double master = symbol(s, "master_bytes");
      EXPECT_DOUBLE_EQ(
          (symbol(s, "dense") * master + symbol(s, "dense_moments")) / symbol(s, "dense_shards") +
              (symbol(s, "experts") * master + symbol(s, "expert_moments")) /
                  symbol(s, "expert_shards"),
          r[MemoryTerm::master_weights] + r[MemoryTerm::optimizer]);
    } else if (name == "memory.gradients") {
      EXPECT_DOUBLE_EQ(sharded(s) * symbol(s, "gradient_bytes"), r[MemoryTerm::gradients]);
    } else if (name == "memory.logits") {
      EXPECT_DOUBLE_EQ(symbol(s, "rows") * symbol(s, "vocabulary") * symbol(s, "value_bytes"),
                       s.value);
    } else if (name == "memory.gathered") {
      EXPECT_DOUBLE_EQ(symbol(s, "units") + symbol(s, "gradient") + symbol(s, "dequantised") +
                           symbol(s, "casts"),
                       r[MemoryTerm::gathered]);
    } else {
      continue;
    }
    ++seen;
  }
  EXPECT_EQ(seen, 5);
}

TEST(MemoryModel, RecorderChangesNothing) {
  std::mt19937 random(7);
  Model models[] = {test::llama31_8b(), test::mixtral_8x7b(), test::deepseek_v3()};
  Train train;
  train.sequence = 4096;
  FineTune tune;
  tune.sequence = 1024;
  tune.rank = 8;
  const Job jobs[] = {serve(900, 100), train, tune};
  int steps = 0;
  for (const Model& model : models)
    for (const Job& job : jobs) {
      EnginePolicy e = plain_engine();
      e.loss_bytes_per_logit = 6;
      MemoryModel m = prepared(model, job, 64, e);
      for (int i = 0; i < 400; ++i) {
        Plan p;
        p.tensor = 1 << (random() % 7);
        if (random() % 5 == 0) p.tensor = 1 + static_cast<int>(random() % 12);
        p.pipeline = 1 + static_cast<int>(random() % 8);
        p.virtual_stages = 1 + static_cast<int>(random() % 3);
        p.data = 1 << (random() % 4);
        p.expert = 1 << (random() % 4);
        p.zero = static_cast<int>(random() % 4);
        p.micro_batch = 1 + static_cast<int>(random() % 64);
        p.accumulation = 1 + static_cast<int>(random() % 8);
        p.recompute = static_cast<Recompute>(random() % 3);
        p.sequence_parallel = random() % 2;
        p.weights = random() % 2 ? Format::bf16 : Format::fp8_tensor;
        int stage = static_cast<int>(random() % static_cast<unsigned>(p.pipeline));
        NoRecord quiet;
        Record heard;
        RankMemory a = m.evaluate(p, stage, quiet), b = m.evaluate(p, stage, heard);
        ASSERT_EQ(a.bytes, b.bytes);
        steps += static_cast<int>(heard.derivation.steps.size());
        for (double v : a.bytes) ASSERT_TRUE(v >= 0 && v < 1e16);
      }
    }
  EXPECT_GT(steps, 10000);
}

}  // namespace
}  // namespace trigon
