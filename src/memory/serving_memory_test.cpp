// What serving holds beside weights and caches, by hand.
#include <gtest/gtest.h>

#include "memory/memory_model.hpp"
#include "memory/test_models.hpp"

namespace trigon {
namespace {

EnginePolicy plain() {
  EnginePolicy e;
  e.id = "test";
  e.serves = e.trains = true;
  e.autograd = Autograd::fused;
  return e;
}

RankMemory at(const Model& model, const Serve& job, const EnginePolicy& engine, const Plan& plan,
              const Cluster& cluster = test::cluster(8)) {
  auto m = MemoryModel::prepare(model, job, cluster, engine, test::exactly_gib(80));
  NoRecord quiet;
  return m->evaluate(plan, 0, quiet);
}

// Tuples of past keys and values: what a step reads and what it makes are both whole.
TEST(ServingMemory, ACacheThatIsCopiedWholeCountsTwice) {
  EnginePolicy e = plain();
  const Model model = test::llama2_7b();
  const RankMemory once = at(model, test::serve(1, 2047), e, Plan{});
  e.whole_cache_copied = true;
  const RankMemory twice = at(model, test::serve(1, 2047), e, Plan{});
  EXPECT_EQ(once[MemoryTerm::kv_cache], 2048.0 * 32 * 2 * 4096 * 2);
  EXPECT_EQ(twice.total() - once.total(), once[MemoryTerm::kv_cache]);
}

// exllama: the largest matrix in 16 bit and 2,048 rows of the MLP: 4096 x 11008 x 2 and 2048 x
// 11008 x 2 bytes.
TEST(ServingMemory, PackedMatricesAreUnpackedToBeMultiplied) {
  EnginePolicy e = plain();
  e.unpacked_bytes = 2;
  e.unpacked_rows = 2048;
  Plan p;
  EXPECT_EQ(at(test::llama2_7b(), test::serve(1, 100), e, p)[MemoryTerm::gathered], 0);
  p.weights = Format::int4_g128;
  EXPECT_EQ(at(test::llama2_7b(), test::serve(1, 100), e, p)[MemoryTerm::gathered],
            4096.0 * 11008 * 2 + 2048.0 * 11008 * 2);
  // A head that is packed too is the largest: 32000 x 4096.
  e.quantises_head = true;
  e.unpacked_rows = 0;
  EXPECT_EQ(at(test::llama2_7b(), test::serve(1, 100), e, p)[MemoryTerm::gathered],
            32000.0 * 4096 * 2);
}

TEST(ServingMemory, AQuantisedHeadTakesTheFormatsBits) {
  EnginePolicy e = plain();
  Plan p;
  p.weights = Format::nf4;
  const double kept = at(test::llama2_7b(), test::serve(1, 100), e, p)[MemoryTerm::weights];
  e.quantises_head = true;
  const double packed = at(test::llama2_7b(), test::serve(1, 100), e, p)[MemoryTerm::weights];
  EXPECT_DOUBLE_EQ(kept - packed, 32000.0 * 4096 * (2 - bits_per_element(Format::nf4) / 8));
}

// NVIDIA/nccl issue 964: 544 MB between two A100 and 688 MB among more, over 24 channels.
TEST(ServingMemory, CommunicationBuffersFollowChannelsAndPeers) {
  EnginePolicy e = plain();
  e.collective_overhead = mebibytes(1);
  Plan p;
  auto of = [&](int ranks, PeerTopology topology) {
    p.tensor = ranks;
    Cluster c = test::cluster(8);
    c.intra.topology = topology;
    return at(test::llama2_7b(), test::serve(1, 100), e, p, c)[MemoryTerm::collectives];
  };
  EXPECT_EQ(of(1, PeerTopology::fabric_switch), 0);
  EXPECT_NEAR(of(2, PeerTopology::fabric_switch), 544e6, 0.16 * 544e6);
  EXPECT_NEAR(of(8, PeerTopology::fabric_switch), 688e6, 0.09 * 688e6);
  EXPECT_LT(of(2, PeerTopology::none), 50e6);
}

// 35 captured batches and 32 layers at 0.33 MiB.
TEST(ServingMemory, CapturedGraphsFollowBatchesAndLayers) {
  EnginePolicy e = plain();
  e.launch = Launch::graphs;
  e.graph_per_layer = mebibytes(0.33);
  for (int i = 0; i < 35; ++i) e.capture_batches.push_back(i + 1);
  EXPECT_NEAR(at(test::llama2_7b(), test::serve(1, 100), e, Plan{})[MemoryTerm::graphs],
              35 * 32 * 0.33 * kMi, 1);
  e.max_sequences = 4;  // nothing above 8 is captured
  EXPECT_NEAR(at(test::llama2_7b(), test::serve(1, 100), e, Plan{})[MemoryTerm::graphs],
              8 * 32 * 0.33 * kMi, 1);
}

// What lies outside the fraction leaves the pool as it is.
TEST(ServingMemory, FractionsCountWhatTheirReleasesCount) {
  EnginePolicy e = plain();
  e.pool = PoolRule::total_fraction;
  e.memory_fraction = 0.9;
  e.max_batched_tokens = 2048;
  e.max_sequences = 64;
  e.context_overhead = mebibytes(400);
  e.library_overhead = mebibytes(100);
  const Model model = test::llama2_7b();
  auto pool = [&] {
    auto m = MemoryModel::prepare(model, test::serve(100, 100), test::cluster(1), e,
                                  test::exactly_gib(80));
    return m->capacity(Plan{}).pool_bytes;
  };
  e.context_inside_fraction = true;
  const double inside = pool();
  e.context_inside_fraction = false;
  EXPECT_NEAR(pool() - inside, 400 * kMi, 1);
  e.pool_margin = mebibytes(150);
  EXPECT_NEAR(pool() - inside, 250 * kMi, 1);
}

// FlashMLA pages of 64 tokens: a sequence of 65 takes two.
TEST(ServingMemory, CachesOfTheLatentHavePagesOfTheirOwn) {
  EnginePolicy e = plain();
  e.block_tokens = 16;
  e.latent_block_tokens = 64;
  EXPECT_EQ(at(test::deepseek_v3(), test::serve(60, 5), e, Plan{})[MemoryTerm::kv_cache],
            128.0 * 61 * 576 * 2);
  EXPECT_EQ(at(test::llama2_7b(), test::serve(60, 5), e, Plan{})[MemoryTerm::kv_cache],
            80.0 * 32 * 2 * 4096 * 2);
}

}  // namespace
}  // namespace trigon
