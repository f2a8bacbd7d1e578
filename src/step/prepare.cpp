#include <algorithm>
#include <cmath>

#include "lower/lower.hpp"
#include "memory/layer_share.hpp"
#include "step/items.hpp"
#include "step/pass_time.hpp"
#include "step/tables.hpp"
#include "step/training_tables.hpp"

namespace trigon {

// Sequences per decode pass that are costed; evaluation interpolates between them. Fine at the
// start, where a staircase of tiles shows, and about 1.4x apart later.
std::vector<std::int32_t> batch_grid(std::int64_t limit, std::int32_t asked) {
  std::vector<std::int32_t> grid{1,  2,  3,   4,   6,   8,   12,  16,  24,   32,   48,
                                 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048};
  std::erase_if(grid, [&](std::int32_t b) { return limit > 0 && b > limit; });
  for (std::int64_t extra : {limit, static_cast<std::int64_t>(asked)})
    if (extra > 0 && extra <= 65536) grid.push_back(static_cast<std::int32_t>(extra));
  std::sort(grid.begin(), grid.end());
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  return grid;
}

namespace {

struct Lengths {
  double input = 0, output = 0;
};

Lengths lengths_of(const Job& job) {
  if (auto s = std::get_if<Serve>(&job))
    return {static_cast<double>(s->input_tokens), static_cast<double>(s->output_tokens)};
  if (auto b = std::get_if<Batch>(&job))
    return {static_cast<double>(b->input_tokens), static_cast<double>(b->output_tokens)};
  return {};
}

Pass base_pass(const Tables& t, std::int32_t tensor, std::int32_t expert) {
  Pass p;
  p.kv = t.domain.kv;
  p.activations = t.domain.activations;
  p.tensor = tensor;
  p.expert = expert;
  p.attention_data = t.engine.attention_ranks > 1;
  p.absorbed_latent = t.engine.mla_absorbed;
  // Hand-written kernels fuse whatever launches them.
  p.fused_elementwise = t.engine.fusion != Fusion::none || t.engine.autograd == Autograd::fused;
  p.replace_weights = t.domain.weights;
  const double act_bits = bits_per_element(p.activations);
  if (!t.engine.flash_attention)
    p.score_bytes =
        t.engine.score_passes > 0 ? t.engine.score_passes * act_bits / 8 : t.engine.score_bytes;
  p.autocast =
      t.engine.fusion == Fusion::pointwise && act_bits == 16 && t.domain.weights == Format::f32;
  p.cache_copied = t.engine.concatenated_cache;
  p.heads_expanded = t.engine.eager.expanded_kv;
  p.gathered_rows = static_cast<double>(t.engine.gathered_rows);
  p.expert_loop = t.engine.expert_loop;
  p.row_products = t.engine.row_products;
  p.widened_rows = static_cast<double>(t.engine.widened_rows);
  p.expert_kernels = t.engine.expert_kernels_across_nodes != ExpertKernels::none && expert > 1 &&
                     tensor > t.device.per_node && t.device.accelerator->vendor == "nvidia";
  p.low_latency_experts = t.engine.expert_kernels_across_nodes == ExpertKernels::deepep_low_latency;
  return p;
}

}  // namespace

double pass_tokens(const EnginePolicy& e) {
  // llama.cpp feeds the device in micro-batches, whatever the batch it accepts.
  return static_cast<double>(e.micro_batch_tokens > 0 ? e.micro_batch_tokens
                                                      : e.max_batched_tokens * e.attention_ranks);
}

PromptPasses prompt_passes(double sequences, double input, double budget) {
  PromptPasses p;
  if (budget <= 0 || sequences * input <= budget) return {1, sequences, input, 0};
  if (input <= budget) {
    double together = std::max(1.0, std::floor(budget / input));
    p.passes = std::ceil(sequences / together);
    p.sequences = sequences / p.passes;
    p.new_tokens = input;
    return p;
  }
  double chunks = std::ceil(input / budget);
  p.passes = sequences * chunks;
  p.sequences = 1;
  p.new_tokens = input / chunks;
  p.mean_cached = (input - p.new_tokens) / 2;
  return p;
}

PromptPasses prompt_passes(const Tables& t, double sequences) {
  const double input = lengths_of(t.job).input, budget = pass_tokens(t.engine);
  if (t.stack->generates && !t.source) return prompt_passes(sequences, input, budget);
  PromptPasses p{1, sequences, input, 0};
  if (budget <= 0 || input <= 0) return p;
  const double together = std::max(1.0, std::floor(budget / input));
  p.passes = std::ceil(sequences / together);
  p.sequences = sequences / p.passes;
  return p;
}

Pass decode_pass(const Tables& t, std::int32_t tensor, std::int32_t expert, double batch) {
  Pass p = base_pass(t, tensor, expert);
  Lengths l = lengths_of(t.job);
  p.sequences = batch;
  p.new_tokens = 1;
  if (t.engine.expert_kernels_across_nodes == ExpertKernels::deepep) p.low_latency_experts = true;
  p.cached_tokens = std::max(0.0, l.output - 1) / 2;
  if (t.source)
    p.source_tokens = l.input;
  else
    p.cached_tokens += l.input;
  p.logits_rows = 1;
  return p;
}

Pass prefill_pass(const Tables& t, std::int32_t tensor, std::int32_t expert,
                  const PromptPasses& passes) {
  Pass p = base_pass(t, tensor, expert);
  p.sequences = passes.sequences;
  p.new_tokens = passes.new_tokens;
  p.cached_tokens = passes.mean_cached;
  p.logits_rows = t.engine.logits == LogitsRows::all_tokens ? passes.new_tokens : 1;
  if (t.source) {
    // The encoder took the input; the decoder starts from one token and projects what it reads.
    p.new_tokens = p.logits_rows = 1;
    p.cached_tokens = 0;
    p.source_tokens = passes.new_tokens;
    p.project_source = true;
  }
  return p;
}

Pass encoder_pass(const Tables& t, std::int32_t tensor, std::int32_t expert, double sequences) {
  Pass p = base_pass(t, tensor, expert);
  p.sequences = sequences;
  p.new_tokens = lengths_of(t.job).input;
  p.logits_rows = 0;  // hidden states are the answer
  return p;
}

double layer_host_seconds(const Tables& t, const Pass& pass) {
  const bool replayed = t.engine.launch == Launch::graphs && pass.new_tokens < 2;
  return replayed ? 0 : t.device.engine.layer_overhead_seconds;
}

// Kernels that an eager framework launches for a layer of plain matrices: modeling_llama.py of
// Transformers 4.4x has 7 products, 2 norms of 6, 10 to rotate and 20 of the cache, attention,
// activation, residuals and masks.
constexpr double kEagerLaunches = 50;

double with_layer_host(const Tables& t, const Pass& pass, const OperatorList& ops,
                       double device_seconds, double count) {
  const double host = count * layer_host_seconds(t, pass);
  if (host <= 0 || t.engine.waiting_formats.empty())
    return with_host(t.device, device_seconds, host);
  double launches = 0;
  bool waiting = false;
  for (const Operator& op : ops)
    if (op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm)
      if (const auto more = t.engine.waits(op.weights)) {
        waiting = true;
        launches += *more * op.repeat;
      }
  if (!waiting) return with_host(t.device, device_seconds, host);
  return device_seconds + host * (1 + launches / kEagerLaunches);
}

PassTime pass_time(const Tables& t, const Stack& stack, const Pass& pass) {
  PassTime out;
  OperatorList ops;
  ops.reserve(32);
  for (const LayerRun& run : stack.runs) {
    ops.clear();
    lower_layer(stack, run.layer, pass, ops);
    const double layer = with_layer_host(t, pass, ops, list_seconds(t.device, ops), 1);
    out.layers += layer * static_cast<double>(run.count);
  }
  ops.clear();
  lower_embedding(stack, pass, ops);
  lower_head(stack, pass, ops);
  out.ends = list_seconds(t.device, ops);
  return out;
}

namespace {

// The prompts of `batch` requests, from their first pass to the last.
PassTime prompt_time(const Tables& t, std::int32_t tensor, std::int32_t expert, double batch) {
  const PromptPasses passes = prompt_passes(t, batch);
  PassTime sum;
  auto add = [&](const PassTime& one) {
    sum.layers += one.layers * passes.passes;
    sum.ends += one.ends * passes.passes;
  };
  const Stack* encoder = t.stack->generates ? t.source : t.stack;
  if (encoder) add(pass_time(t, *encoder, encoder_pass(t, tensor, expert, passes.sequences)));
  if (t.stack->generates) add(pass_time(t, *t.stack, prefill_pass(t, tensor, expert, passes)));
  return sum;
}

void fill_inference(Tables& t, std::int32_t asked_batch) {
  InferenceTables& i = t.inference;
  if (t.time_steps) i.decode.clear();
  if (t.time_prompts) i.prefill.clear();
  i.send_per_token.clear();
  i.batches =
      t.domain.batches.empty() ? batch_grid(t.engine.max_sequences, asked_batch) : t.domain.batches;
  for (std::int32_t tensor : t.domain.tensor) {
    for (std::int32_t expert : t.domain.expert) {
      std::int32_t e = expert <= tensor && tensor % expert == 0 ? expert : 1;
      for (std::int32_t b : i.batches) {
        if (t.time_steps)
          i.decode.push_back(t.stack->generates
                                 ? pass_time(t, *t.stack, decode_pass(t, tensor, e, b))
                                 : PassTime{});
        if (t.time_prompts) i.prefill.push_back(prompt_time(t, tensor, e, b));
      }
    }
    double bytes =
        static_cast<double>(t.stack->hidden) * bits_per_element(t.domain.activations) / 8;
    i.send_per_token.push_back(bytes);
  }
}

}  // namespace

namespace {

const char* graph_class(Format weights) {
  switch (weights) {
    case Format::f32:
      return "graph-fp32";
    case Format::tf32:
      return "graph-tf32";
    case Format::int8:
    case Format::i8:
      return "graph-int8";
    case Format::fp8_tensor:
    case Format::f8_e4m3:
      return "graph-fp8";
    default:
      return "graph-half";
  }
}

// The units on which an engine's products run, where its kernels choose others than the format.
void take_products(Tables& t) {
  if (t.engine.half_accumulation && (t.stack || t.domain.activations == Format::f16))
    accumulate_in_half(t.device);
  t.device.integer_products = t.engine.integer_products;
  t.device.lookup_rows = static_cast<double>(t.engine.lookup_rows);
  // FlashAttention-3, which the tables of Hopper time, is 1.5 to 2 times as fast as 2 in the
  // forward pass and 1.5 to 1.75 in the backward one, which has 5 products to its 2 (J. Shah et
  // al., arXiv:2407.08608): 1.66 over both.
  constexpr double kThreeOverTwo = (2 * 1.75 + 5 * 1.625) / 7;
  const auto capability = t.device.accelerator->compute_capability;
  if (t.engine.flash_version == 2 && capability && *capability >= 9 && *capability < 10)
    t.device.operators.attention.prefill_ceiling /= kThreeOverTwo;
}

}  // namespace

Format stored_format(const Model& model, const PlanDomain& formats) {
  // Autocast keeps weights in 32 bit and multiplies in 16.
  const bool half = formats.activations == Format::f16 || formats.activations == Format::bf16;
  const auto multiplied = [&](Format weights) {
    return half && weights == Format::f32 ? formats.activations : weights;
  };
  const Stack* stack = language_stack(model);
  if (model.item && !stack)
    return multiplied(dense_of(formats.weights.value_or(formats.activations)));
  const Format f = model.weight_format;
  const bool sixteen = f == Format::bf16 || f == Format::f16 || f == Format::f32;
  const Format stored =
      dense_of(sixteen || formats.trains_matrices ? formats.weights.value_or(f) : f);
  return stack && !stack->generates ? multiplied(stored) : stored;
}

const char* weight_class(const Model& model, const PlanDomain& formats) {
  if (model.item && !language_stack(model)) return graph_class(stored_format(model, formats));
  // Encoders are a kind of their own: whole inputs, no cache, other kernels.
  const Stack* stack = language_stack(model);
  const bool encoder = stack && !stack->generates;
  const auto named = [&](const char* decoder, const char* of_encoder) {
    return encoder ? of_encoder : decoder;
  };
  switch (stored_format(model, formats)) {
    case Format::bf16:
    case Format::f16:
      return named("half", "encoder-half");
    case Format::f32:
      return named("fp32", "encoder-fp32");
    case Format::tf32:
      return named("tf32", "encoder-tf32");
    case Format::fp8_tensor:
    case Format::fp8_block:
    case Format::mxfp8:
    case Format::f8_e4m3:
    case Format::f8_e5m2:
      return named("fp8", "encoder-fp8");
    case Format::nvfp4:
    case Format::mxfp4:
      return named("fp4", "encoder-fp4");
    case Format::int8:
    case Format::int8_g128:
    case Format::i8:
      return named("int8", "encoder-int8");
    case Format::int4_g128:
    case Format::int4_g64:
    case Format::int4_g32:
    case Format::int3_g128:
    case Format::int2_g128:
    case Format::nf4:
    case Format::nf4_double:
      return named("int4", "encoder-int4");
    default:
      return named("gguf", "encoder-gguf");
  }
}

void reprice(Tables& t, const EngineCoefficients& engine) {
  t.device.engine = engine;
  if (!t.stack) {
    if (t.memory.serving())
      fill_item_inference(t, t.inference.batches);
    else
      fill_item_training(t);
    return;
  }
  if (auto j = std::get_if<Train>(&t.job)) {
    fill_train(t, j->sequence);
  } else if (auto f = std::get_if<FineTune>(&t.job)) {
    fill_train(t, f->sequence);
  } else {
    fill_inference(t, t.domain.micro_batch.empty() ? 0 : t.domain.micro_batch.back());
  }
}

Result<Tables> prepare(const Model& model, const Job& job, const Cluster& cluster,
                       const EnginePolicy& engine, const Calibration& calibration,
                       const Range& usable_bytes, const PlanDomain& domain) {
  Tables t;
  t.model = &model;
  t.stack = language_stack(model);
  if (!t.stack && !model.item)
    return fail(ErrorCode::unsupported, message(StepMessage::no_language_stack, model.id));
  t.job = job;
  t.cluster = cluster;
  t.engine = engine;
  t.domain = domain;
  t.source = source_stack(model);
  for (const Stack* s : stacks_in_order(model)) t.layers += static_cast<double>(s->layers());
  if (!t.stack) t.layers = 1;
  bool training = std::holds_alternative<Train>(job) || std::holds_alternative<FineTune>(job);
  auto device = make_device_model(cluster, calibration, engine.id, training,
                                  weight_class(model, domain), stored_format(model, domain),
                                  engine.library, engine.launch == Launch::eager);
  if (!device) return tl::unexpected(device.error());
  t.device = *device;
  // Training sums through the library (NCCL).
  t.device.custom_all_reduce = !training && engine.custom_all_reduce;
  take_products(t);
  // What nobody knows the speed of is refused, not divided by zero.
  const Format stored = domain.weights.value_or(model.weight_format);
  for (Format weights : {stored, domain.activations}) {
    MathClass cls = math_class(t.device, weights, domain.activations);
    if (t.device.unit[static_cast<std::size_t>(cls)].peak <= 0)
      return fail(
          ErrorCode::missing_fact,
          message(CostMessage::no_matrix_peak, cluster.accelerator->name, math_class_name(cls)),
          "accelerator/" + cluster.accelerator->id + "#peak");
  }
  auto memory = MemoryModel::prepare(model, job, cluster, engine, usable_bytes);
  if (!memory) return tl::unexpected(memory.error());
  t.memory = std::move(*memory);
  if (!t.stack) {
    const std::int32_t asked = domain.micro_batch.empty() ? 0 : domain.micro_batch.back();
    if (training)
      fill_item_training(t);
    else
      fill_item_inference(t, domain.batches.empty() ? batch_grid(0, asked) : domain.batches);
    return t;
  }
  if (!training) {
    fill_inference(t, domain.micro_batch.empty() ? 0 : domain.micro_batch.back());
    return t;
  }
  TrainTables& tr = t.train;
  for (const Stack* s : stacks_in_order(model)) {
    ParameterCount count = count_parameters(*s);
    tr.parameters += static_cast<double>(count.total);
    tr.embedding_parameters += static_cast<double>(count.embedding);
  }
  for (const LayerRun& run : t.stack->runs)
    for (const SubLayer& part : run.layer.parts)
      if (auto m = std::get_if<MixtureOfExperts>(&part))
        tr.expert_parameters += static_cast<double>(run.count) *
                                static_cast<double>(m->up.parameters() + m->down.parameters() +
                                                    (m->gate ? m->gate->parameters() : 0));
  tr.trainable_parameters = tr.parameters;
  std::int64_t sequence = 0;
  if (auto j = std::get_if<Train>(&job)) sequence = j->sequence;
  if (auto j = std::get_if<FineTune>(&job)) {
    sequence = j->sequence;
    tr.frozen_base = j->method != TuneMethod::full;
    if (tr.frozen_base) {
      // LoRA trains rank * (in + out) parameters for each adapted matrix.
      ShareRules rules;
      rules.adapters = true;
      rules.targets = j->targets;
      tr.trainable_parameters = 0;
      for (const Stack* s : stacks_in_order(model))
        for (const LayerRun& run : s->runs)
          tr.trainable_parameters += share_of(run.layer, 1, rules).adapter_in_out *
                                     static_cast<double>(j->rank) *
                                     static_cast<double>(run.stored());
    }
  }
  tr.trainable_share = tr.trainable_parameters / std::max(1.0, tr.parameters);
  fill_train(t, sequence);
  return t;
}

}  // namespace trigon
