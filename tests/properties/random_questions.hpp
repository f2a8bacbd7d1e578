#pragma once
// Random models, machines, jobs and plans, of the kinds that users bring.

#include <rapidcheck.h>

#include "decide/setup.hpp"
#include "decide/test_questions.hpp"

namespace trigon::test {

template <class T>
T one_of(std::vector<T> values) {
  return *rc::gen::elementOf(std::move(values));
}

inline int between(int low, int high) { return *rc::gen::inRange(low, high + 1); }

inline Model any_model() {
  if (between(0, 9) == 0) return deepseek_v3();
  Shape s{};
  s.layers = between(2, 80);
  s.head_dim = one_of<std::int64_t>({64, 128, 256});
  s.kv_heads = one_of<std::int64_t>({1, 2, 4, 8});
  s.heads = s.kv_heads * one_of<std::int64_t>({1, 2, 4, 8});
  s.hidden = s.heads * 128;
  s.ffn = 1024 * between(1, 28);
  s.vocabulary = 1024 * between(8, 150);
  s.tied = between(0, 1) == 1;
  if (between(0, 3) == 0) s.window = between(64, 4096);
  if (between(0, 3) == 0) {
    s.experts = one_of<std::int64_t>({8, 64});
    s.active = one_of<std::int64_t>({1, 2, 8});
  }
  s.format = one_of<Format>({Format::bf16, Format::bf16, Format::f32, Format::fp8_block,
                             Format::int4_g128, Format::q4_k, Format::mxfp4});
  return decoder("any", s);
}

inline const Accelerator& any_card() {
  const auto& cards = catalogues().hardware.accelerators.all();
  return cards[static_cast<std::size_t>(between(0, static_cast<int>(cards.size()) - 1))];
}

inline Cluster any_machine(const Accelerator& card) {
  int per_node = one_of<int>({1, 2, 4, 6, 8});
  return make_cluster(catalogues().hardware, card, per_node, per_node == 8 ? between(1, 4) : 1);
}

inline Question any_question(const Model& model) {
  Question q;
  q.model = &model;
  q.job.kind = one_of<JobKind>(
      {JobKind::serve, JobKind::serve, JobKind::batch, JobKind::train, JobKind::finetune});
  switch (q.job.kind) {
    case JobKind::serve:
      if (between(0, 1) == 0)
        q.job.rate = PerSecond::base(between(1, 400) / 10.0);
      else
        q.job.concurrency = between(1, 200);
      if (between(0, 1) == 0) q.job.limits.tpot = LatencyLimit{milliseconds(between(5, 200)), 95};
      if (between(0, 1) == 0) q.job.limits.ttft = LatencyLimit{milliseconds(between(50, 5000)), 99};
      [[fallthrough]];
    case JobKind::batch:
      q.job.input_tokens = between(1, 8000);
      q.job.output_tokens = between(1, 1000);
      if (q.job.kind == JobKind::batch) q.job.requests = between(1, 5000);
      break;
    case JobKind::finetune:
      q.job.method = one_of<TuneMethod>({TuneMethod::full, TuneMethod::lora, TuneMethod::qlora});
      [[fallthrough]];
    case JobKind::train:
      q.job.tokens = 1e6 * between(1, 100000);
      q.job.sequence = 128 * between(1, 64);
      q.job.global_batch = one_of<std::int64_t>({1, 8, 24, 64, 256});
      break;
  }
  return q;
}

// The setup of a random question on a random machine; discarded where it cannot be asked.
inline Setup any_setup(const Model& model, const Cluster& machine) {
  Question q = any_question(model);
  auto s = set_up(catalogues(), q, machine);
  RC_PRE(s.has_value());
  return *s;
}

// Any legal plan on any number of cards up to 64.
inline Plan any_plan(const Setup& s) {
  Plan p;
  p.tensor = one_of<std::int32_t>({1, 1, 2, 4, 8});
  p.pipeline = between(1, static_cast<int>(std::min<std::int64_t>(4, s.stack->layers())));
  p.data = one_of<std::int32_t>({1, 2, 4});
  p.micro_batch = one_of<std::int32_t>({1, 2, 3, 8, 16});
  if (between(0, 2) == 0) p.expert = one_of<std::int32_t>({2, 4, 8});
  if (s.training) {
    p.zero = p.pipeline > 1 ? between(0, 1) : between(0, 3);
    p.accumulation = between(1, 16);
    p.recompute = one_of<Recompute>({Recompute::none, Recompute::selective, Recompute::full});
    p.sequence_parallel = p.tensor > 1 && between(0, 1) == 1;
    p.recipe = one_of<TrainRecipe>({TrainRecipe::mixed_16bit, TrainRecipe::mixed_fp32_grad,
                                    TrainRecipe::pure_bf16, TrainRecipe::autocast_fp32});
  }
  PlanRequest none;
  apply_formats(p, formats_of(s, none), s);
  if (illegal(s, p)) p.expert = 1;
  RC_PRE(!illegal(s, p));
  return p;
}

}  // namespace trigon::test
