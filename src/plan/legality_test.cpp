#include "plan/legality.hpp"

#include <gtest/gtest.h>

#include "plan/messages.hpp"
#include "plan/stages.hpp"

namespace trigon {
namespace {

Stack stack_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t width, std::int64_t layers,
               std::int64_t experts = 0) {
  Stack s;
  s.hidden = heads * 128;
  Layer l;
  Attention a;
  a.heads = heads;
  a.kv_heads = kv_heads;
  a.o.in = s.hidden;
  a.o.split = Split::row;
  l.parts.push_back(a);
  if (experts > 0) {
    MixtureOfExperts m;
    m.experts = experts;
    m.width = width;
    m.down.in = width;
    l.parts.push_back(m);
  } else {
    Mlp m;
    m.width = width;
    m.down.in = width;
    m.down.split = Split::row;
    l.parts.push_back(m);
  }
  s.runs = {{l, layers}};
  return s;
}

MessageId reason(const Stack& s, const Plan& p, bool serving = true) {
  auto m = check_split(s, p, serving);
  return m ? m->id : MessageId{Room::base, 0xffff};
}

TEST(Legality, HeadsAndWidths) {
  Stack s = stack_of(40, 8, 13824, 40);
  Plan p;
  p.tensor = 8;
  EXPECT_FALSE(check_split(s, p, true));
  p.tensor = 16;
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::heads_do_not_divide));
  // 10 divides the heads, but not the key-value heads.
  EXPECT_EQ(std::get<std::int64_t>(check_split(s, p, true)->args[2]), 8);
  p.tensor = 5;  // 40 heads divide, 8 key-value heads neither divide nor repeat
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::kv_heads_do_not_divide));
  s = stack_of(64, 4, 1000, 8);
  p.tensor = 16;
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::width_does_not_divide));
}

TEST(Legality, QuantisationGroupsStayWhole) {
  Stack s = stack_of(28, 4, 18944, 28);  // 18,944 = 148 groups of 128
  auto& mlp = std::get<Mlp>(s.runs[0].layer.parts[1]);
  mlp.down.format = Format::int4_g128;
  Plan p;
  p.tensor = 4;
  EXPECT_FALSE(check_split(s, p, true));
  mlp.down.in = mlp.width = 18944 - 128;  // 147 groups
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::groups_do_not_divide));
}

TEST(Legality, Experts) {
  Stack s = stack_of(32, 8, 14336, 32, 8);
  Plan p;
  p.tensor = 8;
  p.expert = 8;
  EXPECT_FALSE(check_split(s, p, true));
  p.expert = 3;
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::experts_do_not_divide));
  p.expert = 8;
  p.tensor = 4;
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::expert_group));
  p.data = 8;
  EXPECT_FALSE(check_split(s, p, false));
  EXPECT_EQ(reason(stack_of(32, 8, 14336, 32), p, false), message_id(PlanMessage::no_experts));
  EXPECT_EQ(expert_tensor_ranks(p, false), 4);
  p.data = 2;  // 8 expert ranks need the tensor ranks too: experts stay whole
  EXPECT_FALSE(check_split(s, p, false));
  EXPECT_EQ(expert_tensor_ranks(p, false), 1);
  p.data = 1;
  EXPECT_EQ(reason(s, p, false), message_id(PlanMessage::expert_group));
}

TEST(Legality, Pipelines) {
  Stack s = stack_of(32, 8, 14336, 32);
  Plan p;
  p.pipeline = 33;
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::fewer_layers_than_stages));
  p.pipeline = 5;
  EXPECT_FALSE(check_split(s, p, true));
  p.virtual_stages = 2;
  EXPECT_EQ(reason(s, p, false), message_id(PlanMessage::layers_indivisible));
  // 30 layers, the embedding and the loss make 8 blocks of 4.
  Plan eight;
  eight.pipeline = 4, eight.virtual_stages = 2, eight.accumulation = 8;
  EXPECT_FALSE(check_split(stack_of(32, 8, 14336, 30), eight, false));
  p.pipeline = 4;
  EXPECT_EQ(reason(s, p, false), message_id(PlanMessage::interleaving_micro_batches));
  p.accumulation = 8;
  EXPECT_FALSE(check_split(s, p, false));
  p.tensor = 0;
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::degree_below_one));
}

TEST(Stages, CoverEveryLayerOnce) {
  for (std::int64_t layers : {1, 7, 32, 61, 80})
    for (int p = 1; p <= 12; ++p)
      for (int v = 1; v <= 3; ++v) {
        if (p * v > layers) continue;
        std::int64_t at = 0;
        for (int block = 0; block < p * v; ++block) {
          LayerRange r = layers_of(layers, p, v, block % p, block / p);
          EXPECT_EQ(r.begin, at);
          EXPECT_GE(r.count(), layers / (p * v));
          EXPECT_LE(r.count(), layers / (p * v) + 1);
          at = r.end;
        }
        EXPECT_EQ(at, layers);
      }
  // The last stage carries the head and no extra layer.
  EXPECT_EQ(layers_of(61, 4, 1, 3, 0).count(), 15);
  EXPECT_EQ(layers_of(61, 4, 1, 2, 0).count(), 16);
}

TEST(Legality, TheDegreeNamedAsPossibleIsPossible) {
  for (std::int64_t heads : {12, 20, 28, 40, 64})
    for (std::int64_t kv : {1, 2, 4, 8})
      for (std::int64_t width : {1000, 4864, 13824, 18944}) {
        const Stack s = stack_of(heads, kv, width, 8);
        for (std::int32_t t = 2; t <= 64; ++t) {
          Plan p;
          p.tensor = t;
          const auto m = check_split(s, p, true);
          if (!m) continue;
          p.tensor = static_cast<std::int32_t>(std::get<std::int64_t>(m->args[2]));
          EXPECT_LT(p.tensor, t);
          EXPECT_FALSE(check_split(s, p, true)) << heads << " " << kv << " " << width << " " << t;
        }
      }
}

TEST(Legality, ThePlansOwnFormatHasGroupsToo) {
  // 6,144 inputs are 48 groups of 128: 16 ranks hold 3 each, 32 do not hold whole ones.
  Stack s = stack_of(64, 64, 6144, 8);
  Plan p;
  p.tensor = 32;
  EXPECT_FALSE(check_split(s, p, true));
  p.weights = Format::int4_g128;
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::groups_do_not_divide));
  EXPECT_EQ(std::get<std::int64_t>(check_split(s, p, true)->args[2]), 16);
  p.weights = Format::fp8_block;
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::groups_do_not_divide));
  p.weights = Format::fp8_tensor;
  EXPECT_FALSE(check_split(s, p, true));
}

TEST(Legality, KeyGroupsOfAMixerDivideOrAreOne) {
  Stack s = stack_of(16, 16, 4096, 4);
  RecurrentMixer r;
  r.heads = 48;
  r.groups = 1;
  s.runs[0].layer.parts[0] = r;
  Plan p;
  p.tensor = 16;
  EXPECT_FALSE(check_split(s, p, true));
  r.groups = 6;
  s.runs[0].layer.parts[0] = r;
  EXPECT_EQ(reason(s, p), message_id(PlanMessage::mixer_groups_do_not_divide));
}

}  // namespace
}  // namespace trigon
