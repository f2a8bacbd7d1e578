// Properties of models: what holds for every decoder, drawn at random.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/decoder_spec.hpp"
#include "model/inspect.hpp"
#include "model/kv_cache.hpp"

namespace trigon {
namespace {

LayerSpec any_layer() {
  LayerSpec l;
  const auto kv = *rc::gen::inRange<std::int64_t>(1, 5);
  l.kv_heads = kv;
  l.heads = kv * *rc::gen::inRange<std::int64_t>(1, 5);
  l.head_dim = 8 * *rc::gen::inRange<std::int64_t>(1, 9);
  l.value_dim = l.head_dim;
  l.q_bias = *rc::gen::arbitrary<bool>();
  l.o_bias = *rc::gen::arbitrary<bool>();
  l.gated = *rc::gen::arbitrary<bool>();
  l.mlp_bias = *rc::gen::arbitrary<bool>();
  l.qk_norm = *rc::gen::element(QkNorm::none, QkNorm::shared, QkNorm::per_head);
  if (*rc::gen::arbitrary<bool>()) l.window = *rc::gen::inRange<std::int64_t>(1, 100);
  if (*rc::gen::arbitrary<bool>()) {
    l.attention = AttentionKind::latent;
    l.kv_lora_rank = 8 * *rc::gen::inRange<std::int64_t>(1, 9);
    l.q_lora_rank = 8 * *rc::gen::inRange<std::int64_t>(0, 9);
    l.nope_dim = 8;
    l.rope_dim = 4;
    l.window.reset();
  }
  if (*rc::gen::arbitrary<bool>()) {
    l.mlp = MlpKind::experts;
    l.experts = *rc::gen::inRange<std::int64_t>(1, 9);
    l.active = *rc::gen::inRange<std::int64_t>(1, l.experts + 1);
    l.expert_width = 8 * *rc::gen::inRange<std::int64_t>(1, 9);
    l.shared_width = 8 * *rc::gen::inRange<std::int64_t>(0, 3);
  } else {
    l.ffn = 8 * *rc::gen::inRange<std::int64_t>(1, 33);
  }
  const Format f = *rc::gen::element(Format::bf16, Format::q4_k, Format::fp8_block, Format::nvfp4);
  l.formats.q = l.formats.k = l.formats.up = l.formats.expert_down = f;
  return l;
}

DecoderSpec any_spec() {
  DecoderSpec s;
  s.hidden = 8 * *rc::gen::inRange<std::int64_t>(1, 17);
  s.vocabulary = *rc::gen::inRange<std::int64_t>(1, 1000);
  s.tied = *rc::gen::arbitrary<bool>();
  s.norm = *rc::gen::element(NormKind::rms, NormKind::layer_norm, NormKind::no_parameters);
  const auto kinds = *rc::gen::inRange<int>(1, 4);
  for (int k = 0; k < kinds; ++k) {
    const LayerSpec l = any_layer();
    const auto count = *rc::gen::inRange<std::size_t>(1, 4);
    s.layers.insert(s.layers.end(), count, l);
  }
  return s;
}

const Stack& stack_of(const Model& m) { return *language_stack(m); }

TEST(Models, TensorsAddUpToTheCountsAndBytes) {
  EXPECT_TRUE(rc::check([] {
    const DecoderSpec spec = any_spec();
    const auto m = build_decoder(spec, "any");
    RC_ASSERT(m.has_value());
    std::int64_t parameters = 0, bytes = 0;
    for (const ExpectedTensor& t : tensors_of(stack_of(*m))) {
      parameters += t.parameters;
      bytes += t.bytes.value();
    }
    RC_ASSERT(parameters == count_parameters(*m).total);
    RC_ASSERT(bytes == weight_bytes(stack_of(*m)).value());
    RC_ASSERT(count_parameters(*m).active <= count_parameters(*m).total);
  }));
}

TEST(Models, LayersAreTheSumOfModelsOfOneLayer) {
  EXPECT_TRUE(rc::check([] {
    const DecoderSpec spec = any_spec();
    const auto whole = build_decoder(spec, "any");
    RC_ASSERT(whole.has_value());
    DecoderSpec one = spec;
    std::int64_t layers = 0, outside = 0;
    double cache = 0;
    for (const LayerSpec& l : spec.layers) {
      one.layers = {l};
      const auto m = build_decoder(one, "any");
      RC_ASSERT(m.has_value());
      const Stack& s = stack_of(*m);
      const std::int64_t layer = count_parameters(s.runs[0].layer);
      layers += layer;
      outside = count_parameters(s).total - layer;
      cache += kv_bytes(s, Format::bf16, 1000);
    }
    RC_ASSERT(count_parameters(*whole).total == layers + outside);
    RC_ASSERT(stack_of(*whole).layers() == static_cast<std::int64_t>(spec.layers.size()));
    RC_ASSERT(kv_bytes(stack_of(*whole), Format::bf16, 1000) == cache);
  }));
}

TEST(Models, CachesGrowWithTokensAndNeverBeyondTheUnwindowed) {
  EXPECT_TRUE(rc::check([] {
    const auto m = build_decoder(any_spec(), "any");
    RC_ASSERT(m.has_value());
    const auto tokens = *rc::gen::inRange<std::int64_t>(0, 10000);
    const Stack& s = stack_of(*m);
    const double now = kv_bytes(s, Format::bf16, tokens);
    RC_ASSERT(now <= kv_bytes(s, Format::bf16, tokens + 1));
    RC_ASSERT(now <= static_cast<double>(tokens) * kv_bytes_per_token(s, Format::bf16));
    for (const CacheRun& r : cache_layout(s).runs)
      for (std::int64_t t : {1, 2, 4, 8}) {
        // Ranks together hold everything, each no more than the whole.
        RC_ASSERT(r.elements_on_rank(t) <= r.elements());
        RC_ASSERT(r.elements_on_rank(t) * t >= r.elements());
      }
  }));
}

TEST(Models, RowsOfAFormatAreAdditive) {
  EXPECT_TRUE(rc::check([] {
    const auto f =
        static_cast<Format>(*rc::gen::inRange<int>(0, static_cast<int>(Format::unknown)));
    const auto rows = *rc::gen::inRange<std::int64_t>(0, 100);
    const auto length = *rc::gen::inRange<std::int64_t>(0, 2000);
    const auto all = bytes_of(f, rows, length), one = bytes_of(f, 1, length);
    RC_ASSERT(all.has_value());
    RC_ASSERT(one.has_value());
    if (info(f).gguf) RC_ASSERT(all->value() == rows * one->value());
    // Never fewer bits than the format's, never less than a block more a row.
    const double least = bits_per_element(f) / 8 * static_cast<double>(rows * length);
    RC_ASSERT(static_cast<double>(all->value()) >= least - 1e-6);
  }));
}

}  // namespace
}  // namespace trigon
