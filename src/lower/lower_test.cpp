#include "lower/lower.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "memory/test_models.hpp"

namespace trigon {
namespace {

const Stack& stack_of(const Model& m) { return *language_stack(m); }

OperatorList whole(const Stack& s, const Pass& p) {
  OperatorList all;
  lower_embedding(s, p, all);
  for (const LayerRun& run : s.runs)
    for (std::int64_t i = 0; i < run.count; ++i) lower_layer(s, run.layer, p, all);
  lower_head(s, p, all);
  return all;
}

bool multiplies(const Operator& op) {
  return op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm;
}

double matrix_flops(const OperatorList& ops) {
  double f = 0;
  for (const Operator& op : ops)
    if (multiplies(op)) f += op.flops;
  return f;
}

double attention_flops(const OperatorList& ops) {
  double f = 0;
  for (const Operator& op : ops)
    if (op.kind == OperatorKind::attention) f += op.flops;
  return f;
}

std::vector<Operator> named(const OperatorList& ops, std::string_view name) {
  std::vector<Operator> found;
  for (const Operator& op : ops)
    if (op.name == name) found.push_back(op);
  return found;
}

Operator one(const OperatorList& ops, std::string_view name) {
  auto found = named(ops, name);
  EXPECT_EQ(found.size(), 1u) << name;
  return found.empty() ? Operator{} : found[0];
}

OperatorList layer_of(const Model& m, const Pass& p, std::size_t run = 0) {
  OperatorList ops;
  lower_layer(stack_of(m), stack_of(m).runs[run].layer, p, ops);
  return ops;
}

TEST(Lower, Llama2FlopsOfAToken) {
  Model m = test::llama2_7b();
  Pass p;
  p.cached_tokens = 999;
  OperatorList ops = whole(stack_of(m), p);
  // 32 layers of 4 h^2 + 3 h ffn and the head: 6,607,077,376 weights are multiplied.
  double multiplied = 32 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008) + 4096.0 * 32000;
  EXPECT_DOUBLE_EQ(multiplied, 6607077376.0);
  EXPECT_DOUBLE_EQ(matrix_flops(ops), 2 * multiplied);
  // Scores and values against 1,000 keys: 2 products of 2 x 4096 x 1000 in each layer.
  EXPECT_DOUBLE_EQ(attention_flops(ops), 32 * 4 * 4096.0 * 1000);
}

TEST(Lower, DecodeReadsWeightsAndCacheOnce) {
  Model m = test::llama2_7b();
  Pass p;
  p.sequences = 4;
  p.cached_tokens = 999;
  double weights = 0, cache = 0;
  for (const Operator& op : whole(stack_of(m), p)) {
    weights += op.weight_bytes;
    if (op.kind == OperatorKind::attention) cache += op.data_bytes;
  }
  EXPECT_DOUBLE_EQ(weights, 2 * 6607077376.0);
  // 512 KiB a token (published for Llama-2-7B) for 4 sequences of 1,000 tokens, then queries in
  // and outputs out.
  EXPECT_DOUBLE_EQ(cache, 4 * 1000 * 512 * kKi + 32 * 4 * 4096 * 2 * 2.0);
}

// Narayanan et al. 2021 count 96 B s L h^2 (1 + s/6h + V/16Lh) for forward, backward and full
// recomputation of a GPT, with attention over all pairs; Megatron does not recompute the head.
TEST(Lower, Gpt3TrainingFlops) {
  test::Shape shape{96, 12288, 96, 96, 128, 4 * 12288, 51200};
  Model m = test::decoder("gpt-3-175b", shape);
  Stack& s = std::get<Stack>(m.components[0].body);
  auto& attention = std::get<Attention>(s.runs[0].layer.parts[1]);
  auto& mlp = std::get<Mlp>(s.runs[0].layer.parts[3]);
  mlp.gate.reset();
  mlp.gated = false;
  const double tokens = 2048, h = 12288, layers = 96, v = 51200;
  Pass p;
  p.new_tokens = p.logits_rows = tokens;
  auto training = [&] {
    OperatorList ops = whole(s, p);
    double head = one(ops, "head").flops;
    double body = matrix_flops(ops) + attention_flops(ops) - head;
    return 4 * body + 3 * head;
  };
  attention.causal = false;
  double published = 96 * tokens * layers * h * h * (1 + tokens / (6 * h) + v / (16 * layers * h));
  EXPECT_NEAR(training() / published, 1, 1e-12);
  // Causal: a query sees (s + 1) / 2 keys on average, so the middle term is about halved.
  attention.causal = true;
  double halved =
      96 * tokens * layers * h * h * (1 + (tokens + 1) / (12 * h) + v / (16 * layers * h));
  EXPECT_NEAR(training() / halved, 1, 1e-12);
  // 6 N D within the 2.4 % that attention and the embedding make.
  double n = static_cast<double>(count_parameters(s).total);
  EXPECT_NEAR(matrix_flops(whole(s, p)) * 3 / (6 * n * tokens), 1, 0.01);
}

TEST(Lower, ExpertsHit) {
  EXPECT_DOUBLE_EQ(experts_hit(8, 2, 1), 2);
  EXPECT_DOUBLE_EQ(experts_hit(8, 2, 2), 8 * (1 - 0.75 * 0.75));
  EXPECT_NEAR(experts_hit(256, 8, 1e6), 256, 1e-9);
  EXPECT_EQ(experts_hit(0, 0, 10), 0);
  EXPECT_DOUBLE_EQ(experts_hit(4, 4, 1), 4);
}

double keys_by_counting(const Attention& a, int cached, int fresh) {
  double sum = 0;
  for (int i = 0; i < fresh; ++i) {
    int at = cached + i;  // position of the query
    int seen = 0;
    for (int key = 0; key < (a.causal ? at + 1 : cached + fresh); ++key) {
      if (a.window && at - key >= *a.window) continue;
      if (a.chunk && key / *a.chunk != at / *a.chunk) continue;
      ++seen;
    }
    sum += seen;
  }
  return sum / fresh;
}

TEST(Lower, MeanKeysAreWhatCountingGives) {
  for (int cached : {0, 1, 7, 16, 33})
    for (int fresh : {1, 2, 5, 16, 40}) {
      Pass p;
      p.cached_tokens = cached;
      p.new_tokens = fresh;
      Attention a;
      EXPECT_DOUBLE_EQ(mean_keys(a, p), keys_by_counting(a, cached, fresh));
      for (int reach : {1, 8, 16, 100}) {
        a = {};
        a.window = reach;
        EXPECT_DOUBLE_EQ(mean_keys(a, p), keys_by_counting(a, cached, fresh))
            << cached << " + " << fresh << " in a window of " << reach;
        if (fresh == 1) continue;
        a = {};
        a.chunk = reach;
        EXPECT_NEAR(mean_keys(a, p), keys_by_counting(a, cached, fresh), 1e-9)
            << cached << " + " << fresh << " in chunks of " << reach;
      }
      a = {};
      a.causal = false;
      EXPECT_DOUBLE_EQ(mean_keys(a, p), keys_by_counting(a, cached, fresh));
    }
}

TEST(Lower, ADecodedTokenSeesHalfAChunk) {
  Attention a;
  a.chunk = 64;
  Pass p;
  double sum = 0;
  for (int at = 128; at < 192; ++at) sum += keys_by_counting(a, at, 1);
  p.cached_tokens = 150;
  EXPECT_DOUBLE_EQ(mean_keys(a, p), sum / 64);
  p.cached_tokens = 9;  // still in the first
  EXPECT_DOUBLE_EQ(mean_keys(a, p), 10);
}

TEST(Lower, TensorParallelismDivides) {
  Model m = test::llama31_8b();  // 32 heads, 8 key-value heads
  Pass p;
  p.sequences = 16;
  p.cached_tokens = 1000;
  OperatorList alone = layer_of(m, p);
  for (int t : {2, 4, 8}) {
    p.tensor = t;
    OperatorList ops = layer_of(m, p);
    EXPECT_DOUBLE_EQ(matrix_flops(ops) * t, matrix_flops(alone));
    EXPECT_DOUBLE_EQ(attention_flops(ops) * t, attention_flops(alone));
  }
  // Beyond 8 ranks key-value heads are repeated: each rank projects and reads a whole one.
  p.tensor = 16;
  OperatorList ops = layer_of(m, p);
  EXPECT_DOUBLE_EQ(one(ops, "attention.k").n, 128);
  EXPECT_DOUBLE_EQ(one(ops, "attention.q").n, 256);
  EXPECT_DOUBLE_EQ(one(ops, "attention.scores").group_size, 2);
  p.tensor = 4;
  EXPECT_DOUBLE_EQ(one(layer_of(m, p), "attention.scores").group_size, 4);
}

TEST(Lower, CollectivesOfTensorParallelism) {
  Model m = test::llama31_8b();
  Pass p;
  p.sequences = 3;
  p.new_tokens = 100;
  EXPECT_TRUE(named(layer_of(m, p), "attention.reduce").empty());
  p.tensor = 4;
  for (const char* name : {"attention.reduce", "mlp.reduce"}) {
    Operator op = one(layer_of(m, p), name);
    EXPECT_EQ(op.kind, OperatorKind::all_reduce);
    EXPECT_DOUBLE_EQ(op.payload_bytes, 300 * 4096 * 2);  // tokens x hidden in 16 bit
    EXPECT_EQ(op.ranks, 4);
    EXPECT_EQ(op.stride, 1);
  }
  p.sequence_parallel = true;
  auto both = named(layer_of(m, p), "mlp.reduce");
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].kind, OperatorKind::reduce_scatter);
  EXPECT_EQ(both[1].kind, OperatorKind::all_gather);
  EXPECT_DOUBLE_EQ(both[1].payload_bytes, 300 * 4096 * 2);
  // Norms then work on a quarter of the tokens.
  EXPECT_DOUBLE_EQ(one(layer_of(m, p), "attention.o").m, 300);
  EXPECT_DOUBLE_EQ(named(layer_of(m, p), "norm")[0].m, 75 * 4096);
}

TEST(Lower, HeadMultipliesTheRowsThatAreSampled) {
  Model m = test::llama31_8b();
  Pass p;
  p.sequences = 5;
  p.new_tokens = 1000;
  p.tensor = 2;
  OperatorList ops;
  lower_head(stack_of(m), p, ops);
  Operator head = one(ops, "head");
  EXPECT_DOUBLE_EQ(head.m, 5);
  EXPECT_DOUBLE_EQ(head.n, 128256 / 2);
  EXPECT_DOUBLE_EQ(one(ops, "head.gather").payload_bytes, 5 * 128256 * 2.0);
  p.logits_rows = 1000;
  ops.clear();
  lower_head(stack_of(m), p, ops);
  EXPECT_DOUBLE_EQ(one(ops, "head").m, 5000);
}

TEST(Lower, KeysThatServeAsValuesAreReadOnce) {
  Model m = test::llama31_8b();
  Stack& s = std::get<Stack>(m.components[0].body);
  auto& a = std::get<Attention>(s.runs[0].layer.parts[1]);
  Pass p;
  p.cached_tokens = 99999;
  double both = one(layer_of(m, p), "attention.scores").data_bytes;
  a.keys_are_values = true;
  EXPECT_NEAR(one(layer_of(m, p), "attention.scores").data_bytes / both, 0.5, 1e-4);
  a.values_cached_apart = true;
  EXPECT_DOUBLE_EQ(one(layer_of(m, p), "attention.scores").data_bytes, both);
}

TEST(Lower, LatentAttentionAbsorbed) {
  Model m = test::deepseek_v3();
  Pass p;
  p.sequences = 2;
  p.cached_tokens = 4095;
  Operator scores = one(layer_of(m, p), "attention.scores");
  // 128 heads share a latent of 512 + 64 per token: 2 x (576 + 512) operations a head and key.
  EXPECT_DOUBLE_EQ(scores.flops, 2.0 * 2 * 4096 * 128 * (576 + 512));
  EXPECT_DOUBLE_EQ(scores.data_bytes, 2.0 * 4096 * 576 * 2 + 2 * 128 * (576 + 512) * 2);
  EXPECT_DOUBLE_EQ(scores.group_size, 128);
  Operator absorb = one(layer_of(m, p), "attention.kv_absorb");
  EXPECT_DOUBLE_EQ(absorb.flops, 2.0 * 2 * 512 * 128 * 256);
  // The latent is whole on every rank; heads are divided.
  p.tensor = 16;
  scores = one(layer_of(m, p), "attention.scores");
  EXPECT_DOUBLE_EQ(scores.m, 8);
  EXPECT_DOUBLE_EQ(scores.group_size, 8);
  EXPECT_DOUBLE_EQ(scores.data_bytes, 2.0 * 4096 * 576 * 2 + 2 * 8 * (576 + 512) * 2);
}

TEST(Lower, LatentAttentionExpanded) {
  Model m = test::deepseek_v3();
  Pass p;
  p.sequences = 2;
  p.new_tokens = 1000;
  Operator scores = one(layer_of(m, p), "attention.scores");
  EXPECT_DOUBLE_EQ(scores.flops, 2.0 * 2000 * 500.5 * 128 * (192 + 128));
  EXPECT_DOUBLE_EQ(one(layer_of(m, p), "attention.kv_up").m, 2000);
  // A later chunk expands the cached latents of the earlier ones again.
  p.cached_tokens = 3000;
  EXPECT_DOUBLE_EQ(one(layer_of(m, p), "attention.kv_up").m, 2 * 4000);
  // An engine that caches expanded heads never expands a token twice.
  p.absorbed_latent = false;
  EXPECT_DOUBLE_EQ(one(layer_of(m, p), "attention.kv_up").m, 2000);
  p.new_tokens = 1;
  EXPECT_DOUBLE_EQ(one(layer_of(m, p), "attention.kv_up").m, 2);
  scores = one(layer_of(m, p), "attention.scores");
  EXPECT_DOUBLE_EQ(scores.data_bytes, 2.0 * 3001 * 128 * 320 * 2 + 2 * 128 * 320 * 2);
}

TEST(Lower, SparseAttentionReadsTheChosenTokens) {
  Model m = test::deepseek_v3();
  Stack& s = std::get<Stack>(m.components[0].body);
  SparseIndexer x;  // DeepSeek-V3.2
  x.heads = 64;
  x.head_dim = 128;
  x.top_k = 2048;
  x.q = test::linear(1536, 64 * 128, Split::replicated);
  x.k = test::linear(7168, 128, Split::replicated);
  x.weights = test::linear(7168, 64, Split::replicated);
  std::get<LatentAttention>(s.runs[0].layer.parts[1]).indexer = x;
  Pass p;
  p.cached_tokens = 65535;
  OperatorList ops = layer_of(m, p);
  EXPECT_DOUBLE_EQ(one(ops, "attention.scores").key_tokens, 2048);
  Operator index = one(ops, "indexer.scores");
  EXPECT_DOUBLE_EQ(index.flops, 2.0 * 65536 * 64 * 128);
  EXPECT_DOUBLE_EQ(index.data_bytes, 65536.0 * 128 + 64 * 128);  // FP8 keys
  p.cached_tokens = 99;
  EXPECT_DOUBLE_EQ(one(layer_of(m, p), "attention.scores").key_tokens, 100);
}

TEST(Lower, ExpertsOfAServingGroup) {
  Model m = test::mixtral_8x7b();
  Pass p;
  p.sequences = 10;
  OperatorList alone = layer_of(m, p);
  Operator up = one(alone, "moe.up");
  EXPECT_DOUBLE_EQ(up.m, 20);  // two experts a token
  EXPECT_DOUBLE_EQ(up.flops, 2.0 * 20 * 4096 * 14336);
  double hit = 8 * (1 - std::pow(0.75, 10));
  EXPECT_DOUBLE_EQ(up.weight_bytes, hit * 4096 * 14336 * 2);
  // Slices of each expert, or whole experts: the same work and reading on a rank of four.
  p.tensor = 4;
  Operator sliced = one(layer_of(m, p), "moe.up");
  EXPECT_DOUBLE_EQ(sliced.flops * 4, up.flops);
  EXPECT_DOUBLE_EQ(sliced.weight_bytes * 4, up.weight_bytes);
  p.expert = 4;
  Operator placed = one(layer_of(m, p), "moe.up");
  EXPECT_DOUBLE_EQ(placed.flops * 4, up.flops);
  EXPECT_DOUBLE_EQ(placed.weight_bytes * 4, up.weight_bytes);
  EXPECT_DOUBLE_EQ(placed.n, 14336);
  EXPECT_TRUE(named(layer_of(m, p), "moe.dispatch").empty());
  EXPECT_EQ(named(layer_of(m, p), "moe.reduce").size(), 1u);
}

TEST(Lower, TokensTravelToExpertsOnOtherNodes) {
  Model m = test::mixtral_8x7b();
  Pass p;
  p.sequences = 64;
  p.tensor = p.expert = 8;
  const OperatorList sums = layer_of(m, p);
  p.expert_kernels = true;
  p.low_latency_experts = true;
  const OperatorList ops = layer_of(m, p);
  const Operator dispatch = one(ops, "moe.dispatch");
  EXPECT_EQ(dispatch.kind, OperatorKind::expert_dispatch);
  EXPECT_TRUE(dispatch.low_latency);
  EXPECT_DOUBLE_EQ(dispatch.m, 8);  // an eighth of the tokens each
  EXPECT_DOUBLE_EQ(dispatch.n, 2);
  EXPECT_DOUBLE_EQ(dispatch.k, 4096);
  EXPECT_DOUBLE_EQ(dispatch.groups, 8);
  EXPECT_EQ(one(ops, "moe.combine").kind, OperatorKind::expert_combine);
  // The same experts' work, no sum over the group afterwards, a share of the routing.
  EXPECT_DOUBLE_EQ(one(ops, "moe.up").flops, one(sums, "moe.up").flops);
  EXPECT_DOUBLE_EQ(one(ops, "moe.up").weight_bytes, one(sums, "moe.up").weight_bytes);
  EXPECT_TRUE(named(ops, "moe.reduce").empty());
  EXPECT_DOUBLE_EQ(one(ops, "moe.router").flops * 8, one(sums, "moe.router").flops);
}

TEST(Lower, RanksThatDivideSequencesGatherTokensForTheirExperts) {
  Model m = test::mixtral_8x7b();
  Pass p;
  p.sequences = 64;
  p.tensor = p.expert = 8;
  const OperatorList sums = layer_of(m, p);
  p.attention_data = true;
  const OperatorList ops = layer_of(m, p);
  // Eight tokens a rank meet the whole of attention; nothing is summed over the group.
  const Operator q = one(ops, "attention.q");
  EXPECT_DOUBLE_EQ(q.m, 8);
  EXPECT_DOUBLE_EQ(q.n, 4096);
  EXPECT_DOUBLE_EQ(q.flops, one(sums, "attention.q").flops);
  EXPECT_TRUE(named(ops, "attention.reduce").empty());
  EXPECT_DOUBLE_EQ(one(ops, "attention.scores").flops, one(sums, "attention.scores").flops);
  // All 64 tokens come to the rank's one expert in 16 bit, and the sums go back.
  const Operator gather = one(ops, "moe.gather_tokens");
  EXPECT_EQ(gather.kind, OperatorKind::all_gather);
  EXPECT_EQ(gather.ranks, 8);
  EXPECT_DOUBLE_EQ(gather.payload_bytes, 64 * 4096 * 2);
  EXPECT_EQ(one(ops, "moe.reduce").kind, OperatorKind::reduce_scatter);
  EXPECT_DOUBLE_EQ(one(ops, "moe.up").flops, one(sums, "moe.up").flops);
  EXPECT_DOUBLE_EQ(one(ops, "moe.up").weight_bytes, one(sums, "moe.up").weight_bytes);
  // Experts alone are divided: a group of one is a plain rank.
  p.tensor = p.expert = 1;
  const OperatorList alone = layer_of(m, p);
  EXPECT_TRUE(named(alone, "moe.gather_tokens").empty());
}

TEST(Lower, WindowsAreThoseThatBind) {
  Model m = test::mixtral_8x7b();
  Stack& s = std::get<Stack>(m.components[0].body);
  Attention* found = nullptr;
  for (SubLayer& part : s.runs[0].layer.parts)
    if (auto* x = std::get_if<Attention>(&part)) found = x;
  ASSERT_NE(found, nullptr);
  Attention& attention = *found;
  Pass p;
  p.cached_tokens = 1000;
  attention.window = 4096;
  EXPECT_EQ(one(layer_of(m, p), "attention.scores").window, 0);
  p.cached_tokens = 8000;
  EXPECT_EQ(one(layer_of(m, p), "attention.scores").window, 4096);
  EXPECT_EQ(one(layer_of(m, p), "attention.scores").key_tokens, 4096);
}

TEST(Lower, ExpertsOfATrainingGroup) {
  Model m = test::mixtral_8x7b();
  Pass p;
  p.sequences = 1;
  p.new_tokens = 4096;
  p.expert_inside_tensor = false;
  Operator permute = one(layer_of(m, p), "moe.permute");
  p.expert = 8;
  p.tensor = 2;
  OperatorList ops = layer_of(m, p);
  Operator dispatch = one(ops, "moe.dispatch");
  EXPECT_EQ(dispatch.kind, OperatorKind::all_to_all);
  EXPECT_DOUBLE_EQ(dispatch.payload_bytes, 4096 * 2 * 4096 * 2.0);  // each token to two experts
  EXPECT_EQ(dispatch.ranks, 8);
  // Neighbours of the expert group are a tensor group apart.
  EXPECT_EQ(dispatch.stride, 2);
  // A rank sends as many tokens as it gets back: its own share of the work.
  EXPECT_DOUBLE_EQ(one(ops, "moe.up").m, 8192);
  EXPECT_DOUBLE_EQ(one(ops, "moe.up").groups, 1);
  EXPECT_DOUBLE_EQ(one(ops, "moe.permute").data_bytes, permute.data_bytes);
}

TEST(Lower, NarrowerWeightsReplaceSixteenBitOnes) {
  Model m = test::llama31_8b();
  Pass p;
  p.replace_weights = Format::fp8_tensor;
  Operator q = one(layer_of(m, p), "attention.q");
  EXPECT_EQ(q.weights, Format::fp8_tensor);
  EXPECT_DOUBLE_EQ(q.weight_bytes, 4096.0 * 4096 * bits_per_element(Format::fp8_tensor) / 8);
  // What is quantised already stays.
  test::Shape shape{32, 4096, 32, 8, 128, 14336, 128256};
  shape.format = Format::int4_g128;
  EXPECT_EQ(one(layer_of(test::decoder("awq", shape), p), "attention.q").weights,
            Format::int4_g128);
}

}  // namespace
}  // namespace trigon
