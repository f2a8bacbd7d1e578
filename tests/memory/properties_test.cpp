// What must hold for every model, job, engine and plan.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "engine/catalog.hpp"
#include "memory/memory_model.hpp"
#include "memory/test_models.hpp"

namespace trigon {
namespace {

const FactStore& facts() {
  static const FactStore store = *FactStore::embedded();
  return store;
}

const EngineCatalog& engines() {
  static const EngineCatalog catalog = *EngineCatalog::from(facts());
  return catalog;
}

template <class T>
T one_of(std::vector<T> values) {
  return *rc::gen::elementOf(std::move(values));
}

int between(int low, int high) { return *rc::gen::inRange(low, high + 1); }

Model any_model() {
  test::Shape s{};
  s.layers = between(2, 40);
  s.head_dim = one_of<std::int64_t>({64, 80, 128, 256});
  s.kv_heads = one_of<std::int64_t>({1, 2, 4, 8, 16});
  s.heads = s.kv_heads * one_of<std::int64_t>({1, 2, 4, 8});
  s.hidden = s.heads * 64;
  s.ffn = 256 * between(1, 64);
  s.vocabulary = between(1000, 160000);
  s.tied = between(0, 1) == 1;
  if (between(0, 3) == 0) s.window = between(1, 4096);
  if (between(0, 3) == 0) {
    s.experts = one_of<std::int64_t>({4, 8, 64});
    s.active = one_of<std::int64_t>({1, 2, 4});
  }
  s.format = one_of<Format>({Format::bf16, Format::f32, Format::fp8_block, Format::int4_g128,
                             Format::q4_k, Format::mxfp4});
  Model m = test::decoder("any", s);
  // Half the models alternate windowed and full layers.
  if (s.window && between(0, 1) == 1) {
    Stack& stack = std::get<Stack>(m.components[0].body);
    LayerRun windowed = stack.runs[0];
    s.window.reset();
    LayerRun full{test::decoder_layer(s), 1};
    windowed.count = 1;
    stack.runs.clear();
    for (std::int64_t i = 0; i < s.layers; ++i) stack.runs.push_back(i % 2 ? full : windowed);
  }
  return m;
}

Job any_job(bool serving) {
  if (serving) return test::serve(between(1, 8192), between(1, 2048));
  if (between(0, 1) == 0) {
    Train t;
    t.sequence = between(1, 8192);
    return t;
  }
  FineTune f;
  f.method = one_of<TuneMethod>({TuneMethod::full, TuneMethod::lora, TuneMethod::qlora});
  f.sequence = between(1, 8192);
  f.rank = f.method == TuneMethod::full ? 0 : between(1, 64);
  if (between(0, 1) == 1) f.targets = kQueryValue;
  return f;
}

EnginePolicy any_engine(bool serving) {
  std::vector<std::string> ids;
  for (const std::string& id : engines().ids()) {
    EnginePolicy p = *engines().find(id);
    if (serving ? p.serves : p.trains) ids.push_back(id);
  }
  std::string version;
  std::string id = one_of(ids);
  if (id == "vllm") version = one_of<std::string>({"0.2", "0.6.3", "0.8.5", "0.11.0", "0.24"});
  return *engines().find(id, version);
}

Plan any_plan(bool serving) {
  Plan p;
  p.tensor = between(0, 4) == 0 ? between(1, 12) : 1 << between(0, 5);
  p.pipeline = between(1, 6);
  p.micro_batch = between(1, 300);
  p.expert = 1 << between(0, 3);
  p.kv = one_of<Format>({Format::bf16, Format::fp8_tensor, Format::q8_0});
  if (serving) return p;
  p.micro_batch = between(1, 16);
  p.virtual_stages = between(1, 3);
  p.data = 1 << between(0, 5);
  p.context = 1 << between(0, 2);
  p.zero = between(0, 3);
  p.accumulation = between(1, 16);
  p.recompute = one_of<Recompute>({Recompute::none, Recompute::selective, Recompute::full});
  p.sequence_parallel = between(0, 1) == 1;
  p.recipe =
      one_of<TrainRecipe>({TrainRecipe::mixed_16bit, TrainRecipe::mixed_fp32_grad,
                           TrainRecipe::pure_bf16, TrainRecipe::autocast_fp32, TrainRecipe::fp32});
  return p;
}

MemoryModel prepared(const Model& m, const Job& j, const EnginePolicy& e, double gib) {
  auto r = MemoryModel::prepare(m, j, test::cluster(8, 8), e, test::exactly_gib(gib));
  RC_ASSERT(r.has_value());
  return *r;
}

RankMemory at(const MemoryModel& m, const Plan& p, int stage) {
  NoRecord quiet;
  return m.evaluate(p, stage, quiet);
}

TEST(MemoryProperties, RecorderAndPlainAgreeBitByBit) {
  EXPECT_TRUE(rc::check("recorded == plain", [] {
    bool serving = between(0, 1) == 0;
    Model model = any_model();
    MemoryModel m = prepared(model, any_job(serving), any_engine(serving), 80);
    for (int i = 0; i < 20; ++i) {
      Plan p = any_plan(serving);
      int stage = between(0, p.pipeline - 1);
      NoRecord quiet;
      Record heard;
      RC_ASSERT(m.evaluate(p, stage, quiet).bytes == m.evaluate(p, stage, heard).bytes);
      RC_ASSERT(!heard.derivation.steps.empty());
      for (double v : m.evaluate(p, stage, quiet).bytes) RC_ASSERT(v >= 0 && v < 1e18);
    }
  }));
}

TEST(MemoryProperties, MoreMemoryNeverMakesAFitWorse) {
  EXPECT_TRUE(rc::check("more memory", [] {
    bool serving = between(0, 1) == 0;
    Model model = any_model();
    Job job = any_job(serving);
    EnginePolicy e = any_engine(serving);
    // Where a card's size changes the engine's defaults, the larger card may be asked for more.
    e.large_card = Bytes{};
    e.tier_gib.clear();
    e.tier_tokens.clear();
    Plan p = any_plan(serving);
    double gib = between(1, 400);
    MemoryModel small = prepared(model, job, e, gib);
    MemoryModel large = prepared(model, job, e, gib + between(1, 100));
    RC_ASSERT(!small.fits(p) || large.fits(p));
    if (!serving) return;
    Capacity a = small.capacity(p), b = large.capacity(p);
    RC_ASSERT(a.max_sequences <= b.max_sequences);
    RC_ASSERT(a.max_context <= b.max_context);
    // Where nothing bounds a batch, tokens are counted beside the most sequences: more of these
    // take of the pool.
    if (e.max_sequences > 0 || a.max_sequences == b.max_sequences)
      RC_ASSERT(a.kv_tokens <= b.kv_tokens);
  }));
}

TEST(MemoryProperties, GrowsWithContextAndBatch) {
  EXPECT_TRUE(rc::check("monotone", [] {
    Model model = any_model();
    EnginePolicy e = any_engine(true);
    std::int64_t in = between(1, 4000), out = between(1, 1000);
    Plan p = any_plan(true), more = p;
    more.micro_batch += between(1, 50);
    MemoryModel m = prepared(model, test::serve(in, out), e, 80);
    MemoryModel longer = prepared(model, test::serve(in + between(0, 4000), out + 1), e, 80);
    // ggml's allocator takes the best fitting hole: larger tensors may happen to pack better.
    const double packed = e.compute_buffer ? 0.98 : 1;
    for (int s = 0; s < p.pipeline; ++s) {
      RC_ASSERT(packed * at(m, p, s).total() <= at(m, more, s).total());
      RC_ASSERT(packed * at(m, p, s).total() <= at(longer, p, s).total());
    }
  }));
}

TEST(MemoryProperties, TrainingGrowsWithSequenceAndMicroBatch) {
  EXPECT_TRUE(rc::check("monotone", [] {
    Model model = any_model();
    EnginePolicy e = any_engine(false);
    Train t, longer;
    t.sequence = between(1, 8000);
    longer.sequence = t.sequence + between(1, 4000);
    Plan p = any_plan(false), more = p;
    more.micro_batch += between(1, 8);
    MemoryModel m = prepared(model, t, e, 80), l = prepared(model, longer, e, 80);
    for (int s = 0; s < p.pipeline; ++s) {
      RC_ASSERT(at(m, p, s).total() <= at(m, more, s).total());
      RC_ASSERT(at(m, p, s).total() <= at(l, p, s).total());
    }
  }));
}

TEST(MemoryProperties, RanksTogetherHoldAtLeastTheWhole) {
  EXPECT_TRUE(rc::check("shards cover the model", [] {
    Model model = any_model();
    EnginePolicy e = any_engine(true);
    e.embedding_on_host = false;
    Plan p = any_plan(true), whole;
    p.expert = 1;
    MemoryModel m = prepared(model, test::serve(100, 100), e, 80);
    double sum = 0, cache = 0;
    for (int s = 0; s < p.pipeline; ++s) {
      sum += p.tensor * at(m, p, s)[MemoryTerm::weights];
      cache += p.tensor * m.cache_bytes(p, s, 3, 500);
    }
    whole.kv = p.kv;
    RC_ASSERT(sum >= at(m, whole, 0)[MemoryTerm::weights] * (1 - 1e-12));
    RC_ASSERT(cache >= m.cache_bytes(whole, 0, 3, 500) * (1 - 1e-12));
  }));
}

TEST(MemoryProperties, CapacityIsTheInverseOfFits) {
  EXPECT_TRUE(rc::check("largest that fits", [] {
    Model model = any_model();
    EnginePolicy e = any_engine(true);
    Plan p = any_plan(true);
    MemoryModel m =
        prepared(model, test::serve(between(1, 4000), between(1, 1000)), e, between(1, 200));
    Capacity c = m.capacity(p);
    RC_PRE(c.max_sequences < 1e9);
    if (c.max_sequences >= 1) {
      p.micro_batch = static_cast<std::int32_t>(c.max_sequences);
      RC_ASSERT(m.fits(p));
    }
    p.micro_batch = static_cast<std::int32_t>(c.max_sequences) + 1;
    RC_ASSERT(!m.fits(p));
  }));
}

TEST(MemoryProperties, FewerShardsNeverHoldLess) {
  EXPECT_TRUE(rc::check("ZeRO", [] {
    Model model = any_model();
    EnginePolicy e = any_engine(false);
    Train t;
    t.sequence = between(1, 4096);
    Plan p = any_plan(false);
    p.expert = 1;
    MemoryModel m = prepared(model, t, e, 80);
    auto states = [&](int zero) {
      Plan q = p;
      q.zero = zero;
      RankMemory r = at(m, q, 0);
      return r[MemoryTerm::weights] + r[MemoryTerm::master_weights] + r[MemoryTerm::optimizer];
    };
    RC_ASSERT(states(1) <= states(0));
    RC_ASSERT(states(2) <= states(1));
    RC_ASSERT(states(3) <= states(2));
  }));
}

}  // namespace
}  // namespace trigon
