#include "memory/compute_buffer.hpp"

#include <gtest/gtest.h>

#include "memory/ggml_graph.hpp"
#include "memory/test_models.hpp"

namespace trigon {
namespace {

BufferRun run_of(const Stack& s) {
  BufferRun run;
  for (const LayerRun& r : s.runs)
    for (std::int64_t i = 0; i < std::min<std::int64_t>(r.count, 3); ++i)
      run.layers.push_back({&r.layer, s.hidden});
  return run;
}

// Start-up logs round to 0.01 MiB.
constexpr double kRounding = 0.006;

// llama.cpp b2833 on two cards: CUDA0 640.01, CUDA1 640.02, CUDA_Host 72.02 MiB.
TEST(ComputeBuffer, Llama8bOnTwoCardsWithoutFlashAttention) {
  Model m = test::llama31_8b();
  const Stack& s = *language_stack(m);
  ComputeBuffer b;
  b.keys = 8192;
  b.input_copies = 4;
  BufferRun run = run_of(s);
  run.head = false;
  const DeviceBuffers first = compute_buffers(s, run, b);
  EXPECT_NEAR(first.device / kMi, 640.01, kRounding);
  EXPECT_NEAR(first.host / kMi, 72.02, kRounding);
  run.first = false, run.head = true;
  EXPECT_NEAR(compute_buffers(s, run, b).device / kMi, 640.02, kRounding);
}

// ik_llama.cpp, one card, a context of 1024: 266.5 MiB, and 10.01 on the host.
TEST(ComputeBuffer, Llama8bOnOneCard) {
  Model m = test::llama31_8b();
  const Stack& s = *language_stack(m);
  ComputeBuffer b;
  b.keys = 1024;
  b.fused_norms = b.fused_gates = true;
  const DeviceBuffers bytes = compute_buffers(s, run_of(s), b);
  EXPECT_NEAR(bytes.device / kMi, 266.5, kRounding);
  EXPECT_NEAR(bytes.host / kMi, 10.01, kRounding);
}

// ik_llama.cpp, DeepSeek-V3 -mla 3 -fa -amb 512 -c 32768, experts on the host: 3,393 MiB on the
// card with a 16-bit cache, 176.01 on the host.
TEST(ComputeBuffer, ExpandedLatentAttention) {
  Model m = test::deepseek_v3();
  const Stack& s = *language_stack(m);
  ComputeBuffer b;
  b.flash_attention = b.latent_cached = b.latent_expanded = true;
  b.fused_norms = b.fused_gates = b.fused_experts = true;
  b.latent_mode = 3;
  b.attention_chunk = 512 * kMi;
  b.keys = 32768;
  BufferRun run = run_of(s);
  for (BufferLayer& l : run.layers) l.experts_on_host = true;
  const DeviceBuffers together = compute_buffers(s, run, b);
  EXPECT_NEAR(together.device / kMi, 3393, 3);
  EXPECT_NEAR(together.host / kMi, 176.01, kRounding);
  // Heads one chunk after the other need no more than a chunk's keys and values.
  b.heads_together = false;
  EXPECT_LT(compute_buffers(s, run, b).device, 0.4 * together.device);
}

// The allocator's own rules: best fit, freed after the last use, results in place.
TEST(GgmlGraph, ReusesWhatNobodyNeeds) {
  GgmlGraph g(1);
  const GgmlShape kib{256};
  const GgmlId w = g.outside(0);
  GgmlId x = g.input(kib);
  for (int i = 0; i < 5; ++i) x = g.node(kib, {w, x});
  g.expand(x);
  // Two at a time: an input and an output.
  EXPECT_EQ(g.buffers(1).front(), 2 * 1024);

  GgmlGraph chain(1);
  const GgmlId v = chain.outside(0);
  GgmlId y = chain.node(kib, {v, chain.input({1})});
  for (int i = 0; i < 5; ++i) y = chain.node(kib, {y}, true);
  chain.expand(y);
  EXPECT_EQ(chain.buffers(1).front(), 1024 + 32);
}

}  // namespace
}  // namespace trigon
