#include "decide/setup.hpp"

#include <algorithm>
#include <cmath>

#include "decide/placement.hpp"
#include "decide/support.hpp"
#include "decide/switches.hpp"
#include "hardware/parse.hpp"
#include "job/complete.hpp"
#include "plan/legality.hpp"
#include "plan/messages.hpp"
#include "search/space.hpp"

namespace trigon {
namespace {

EngineTask task_of(JobKind k) {
  switch (k) {
    case JobKind::serve:
      return EngineTask::serve;
    case JobKind::batch:
      return EngineTask::batch;
    case JobKind::train:
      return EngineTask::train;
    case JobKind::finetune:
      return EngineTask::finetune;
  }
  return EngineTask::serve;
}

// Whether an engine runs a model. A pass of an encoder over whole sequences is a graph like any
// other, and so is a training step of an encoder with its decoder.
bool runs(const EnginePolicy& e, const Model& m, JobKind job) {
  const Stack* s = language_stack(m);
  if (!s) return e.runs_graphs;
  const bool training = job == JobKind::train || job == JobKind::finetune;
  const bool whole = !s->generates || (training && source_stack(m));
  return e.runs_tokens || (whole && e.runs_graphs);
}

Result<EnginePolicy> engine_of(const Catalogues& all, const Question& q, const Accelerator& card) {
  if (q.engine.empty()) return all.engines.default_for(task_of(q.job.kind), card, *q.model);
  auto at = q.engine.find('@');
  std::string name = q.engine.substr(0, at);
  std::string version = at == std::string::npos ? "" : q.engine.substr(at + 1);
  auto named = all.engines.find(name, version, q.engine_date);
  if (!named) return named;
  if (runs(*named, *q.model, q.job.kind)) return named;
  const bool items = !language_stack(*q.model);
  const std::string& other = items ? named->items_engine : named->tokens_engine;
  return other.empty() ? named : all.engines.find(other, "", q.engine_date);
}

// A fraction of the total, where others use the card too. Releases that compare it with what is
// free refuse to start when there is less (vllm issue 20305), so a stated fraction is refused and
// the engine's own is lowered; earlier ones count what others use inside their fraction.
std::optional<Error> share_with_others(Setup& s, bool stated) {
  const double used = s.cluster.card.memory_used.in_base(), free = s.usable.value;
  if (s.engine.pool != PoolRule::total_fraction || used <= 0) return std::nullopt;
  const double total = free + used;
  double asked = s.engine.memory_fraction * total;
  if (s.engine.checks_free && asked > free) {
    const double most = std::floor(100 * free / total) / 100;
    Message why =
        message(DecideMessage::fraction_not_free, s.engine.id, bytes(asked), bytes(free), most);
    if (stated) return Error{ErrorCode::bad_argument, std::move(why), "--memory-fraction", {}};
    s.assumptions.push_back({"--memory-fraction", std::move(why)});
    asked = most * total;
  }
  s.engine.memory_fraction = std::max(0.0, s.engine.checks_free ? asked : asked - used) / free;
  return std::nullopt;
}

// The most of these cards in a machine that is known; 0: none is.
int most_in_a_machine(const HardwareCatalog& catalog, const Accelerator& a) {
  int most = 0;
  for (const System& s : catalog.systems())
    if (s.accelerator == &a) most = std::max(most, s.count);
  return most;
}

}  // namespace

Result<Setup> set_up(const Catalogues& all, const Question& q, const Cluster& cluster) {
  Setup s;
  s.model = q.model;
  s.calibration = q.calibration ? q.calibration : &all.calibration;
  s.stack = language_stack(*q.model);
  if (!s.stack && !q.model->item)
    return fail(ErrorCode::unsupported, message(DecideMessage::no_language_model, q.model->id));
  auto job = complete(q.job, *q.model);
  if (!job) return tl::unexpected(job.error());
  s.job = job->job;
  s.assumptions = job->assumptions;
  s.cluster = cluster;
  if (!q.measured) s.cluster.reliability = reliability_of(all.facts);
  const Accelerator& card = *cluster.accelerator;
  auto engine = engine_of(all, q, card);
  if (!engine) return tl::unexpected(engine.error());
  if (auto refused = refused_placement(*engine, q.plan, cluster.count()))
    return tl::unexpected(std::move(*refused));
  s.training = q.job.kind == JobKind::train || q.job.kind == JobKind::finetune;
  if (!q.measured)
    if (auto refused = refused_switches(*engine, q.plan, s.training))
      return tl::unexpected(std::move(*refused));
  if (s.training ? !engine->trains : !engine->serves)
    return fail(ErrorCode::unsupported,
                s.training ? message(EngineMessage::engine_does_not_train, engine->id)
                           : message(EngineMessage::engine_does_not_serve, engine->id),
                "--engine");
  if (!runs(*engine, *q.model, q.job.kind))
    return fail(ErrorCode::unsupported,
                message(!s.stack ? EngineMessage::engine_without_graphs
                                 : EngineMessage::engine_without_tokens,
                        engine->id, q.model->id),
                "--engine");
  Format weights = formats_of(s, q.plan).weights.value_or(q.model->weight_format);
  if (!q.measured)
    if (auto why = unsupported(all, *engine, card, weights))
      return fail(ErrorCode::unsupported, std::move(*why), q.plan.weights ? "--quant" : "--engine",
                  nearest_supported(all, *engine, card, weights));
  if (is_sparse(weights)) {
    if (s.training)
      return fail(ErrorCode::unsupported, message(DecideMessage::sparse_not_trained), "--quant");
    if (!card.sparsity_2to4)
      return fail(ErrorCode::unsupported, message(DecideMessage::no_sparse_units, card.name),
                  "--quant");
    const Format own = q.model->weight_format;
    if (s.stack && own != Format::bf16 && own != Format::f16 && own != Format::f32)
      return fail(ErrorCode::unsupported,
                  message(DecideMessage::sparse_of_16bit, q.model->id, info(own).name), "--quant");
    s.assumptions.push_back({"--quant", message(DecideMessage::assumed_sparse)});
  }
  if (!q.measured && q.plan.kv && !s.training)
    if (auto why = unsupported_cache(*engine, card, *q.plan.kv))
      return fail(ErrorCode::unsupported, std::move(*why), "--kv",
                  nearest_cache(*engine, card, *q.plan.kv));
  s.usable = all.hardware.accelerators.program_memory(card, cluster.card);
  if (s.usable.value <= 0)
    return fail(ErrorCode::bad_argument,
                message(DecideMessage::memory_all_used, card.name, cluster.card.memory_used),
                "--on");
  s.engine = engine->on_card(Bytes::base(s.usable.value), card.architecture);
  if (card.compute_capability && *card.compute_capability < s.engine.flash_capability_min)
    s.engine.flash_attention = false;
  // Kernels of a framework are what older versions of CUDA load at once; ggml has few of its own.
  const auto cuda = s.engine.micro_batch_tokens > 0 ? std::nullopt : cluster.card.cuda;
  if (const auto context = card.context_with(cuda)) s.engine.context_overhead = *context;
  if (q.plan.memory_fraction) s.engine.memory_fraction = *q.plan.memory_fraction;
  if (auto refused = share_with_others(s, q.plan.memory_fraction.has_value()))
    return tl::unexpected(std::move(*refused));
  take_engine_switches(q.plan, s.engine);
  if (q.plan.card_split == CardSplit::none && cluster.count() > 1) {
    s.cluster.per_node = s.cluster.nodes = 1;
    s.cluster.inter.reset();
    s.cluster.written.clear();
    s.cluster.written = write_hardware(s.cluster);
    s.assumptions.push_back(
        {"--split-mode", message(DecideMessage::assumed_idle_cards, cluster.count())});
  }
  if (q.engine.empty())
    s.assumptions.push_back({"--engine", message(DecideMessage::assumed_engine, s.engine.id)});
  for (const Message& m : s.engine.assumptions) s.assumptions.push_back({"--engine", m});
  for (const Message& m : cluster.assumptions) s.assumptions.push_back({"--on", m});
  if (const int most = most_in_a_machine(all.hardware, card); most > 0 && cluster.per_node > most) {
    const int machines = cluster.nodes * ((cluster.per_node + most - 1) / most);
    s.assumptions.push_back(
        {"--on", message(DecideMessage::assumed_one_machine, cluster.per_node, most,
                         std::to_string(machines) + "x" + std::to_string(most) + "x" + card.id)});
  }
  auto peak = [&](MathMode m) { return card.peak_of(m).has_value(); };
  if (!s.stack && !q.plan.weights && !q.plan.activations && q.plan.recipe != TrainRecipe::fp32 &&
      q.model->weight_format == Format::f32)
    s.assumptions.push_back({"--quant", message(DecideMessage::assumed_half_network)});
  if (weights == Format::bf16 && !peak(MathMode::bf16_matrix) &&
      (peak(MathMode::fp16_matrix_fp32_accumulate) || peak(MathMode::fp16_vector)))
    s.assumptions.push_back({"--quant", message(DecideMessage::assumed_half, card.name)});
  if (auto t = std::get_if<Train>(&s.job)) s.global_batch = t->global_batch;
  if (auto t = std::get_if<FineTune>(&s.job)) s.global_batch = t->global_batch;
  return s;
}

PlanDomain formats_of(const Setup& s, const PlanRequest& fixed) {
  PlanDomain d;
  d.kv_values = fixed.kv_values.value_or(Format::unknown);
  d.beside_experts = fixed.beside_experts.value_or(Format::unknown);
  d.mean_bits = fixed.mean_bits.value_or(0);
  d.gpu_layers = fixed.gpu_layers.value_or(-1);
  d.experts_on_host = fixed.experts_on_host.value_or(0);
  d.card_split = fixed.card_split.value_or(CardSplit::layer);
  d.main_card = fixed.main_card.value_or(0);
  if (fixed.card_shares)
    std::copy_n(fixed.card_shares->begin(), std::min(fixed.card_shares->size(), kMostShares),
                d.card_shares.begin());
  d.context_exchange = {fixed.context_exchange.value_or(ContextExchange::ring)};
  d.expert_capacity = fixed.expert_capacity.value_or(0);
  if (!s.stack) {
    // Networks are published in 32 bit and run in 16 unless something else is asked. Eight bits
    // are those of both operands; narrower weights are widened before they are multiplied.
    const Format asked =
        fixed.weights.value_or(fixed.recipe == TrainRecipe::fp32 ? Format::f32 : Format::f16);
    const bool both = !info(asked).weight_only && !info(asked).gguf;
    d.activations = fixed.activations.value_or(both ? dense_of(asked) : Format::f16);
    d.weights = fixed.weights ? *fixed.weights : d.activations;
    return d;
  }
  bool wide = s.model->weight_format == Format::f32;
  if (fixed.recipe == TrainRecipe::fp32) wide = true;
  // Weights that are asked for in 32 bit are multiplied in it.
  if (fixed.weights == Format::f32 || fixed.weights == Format::tf32) wide = true;
  const Format own = fixed.weights == Format::tf32 ? Format::tf32
                     : wide                        ? Format::f32
                                                   : Format::bf16;
  d.activations = fixed.activations.value_or(own);
  Format sixteen = Format::bf16;
  d.kv = fixed.kv.value_or(s.model->kv_format.value_or(wide ? Format::f32 : sixteen));
  if (fixed.weights && *fixed.weights != s.model->weight_format) d.weights = fixed.weights;
  // What is trained whole is kept in the format it runs in, whatever its checkpoint holds.
  auto tuned = std::get_if<FineTune>(&s.job);
  d.trains_matrices = s.training && (!tuned || tuned->method == TuneMethod::full);
  if (d.trains_matrices && bits_per_element(s.model->weight_format) < 16)
    d.weights = fixed.weights.value_or(d.activations);
  // A network under adapters is cast to the format that it runs in (diffusers
  // examples/text_to_image/train_text_to_image_lora.py) unless asked for in another.
  if (auto tune = std::get_if<FineTune>(&s.job);
      tune && tune->method == TuneMethod::lora && s.model->item && !s.stack)
    d.weights = fixed.weights.value_or(d.activations);
  if (auto tune = std::get_if<FineTune>(&s.job); tune && tune->method == TuneMethod::qlora &&
                                                 !d.weights &&
                                                 !info(s.model->weight_format).weight_only)
    d.weights = Format::nf4;
  return d;
}

std::int64_t layers_of(const Setup& s) { return s.stack ? s.stack->layers() : 1; }

void apply_formats(Plan& plan, const PlanDomain& formats, const Setup& s) {
  plan.kv = formats.kv;
  plan.kv_values = formats.kv_values;
  plan.beside_experts = formats.beside_experts;
  plan.mean_bits = formats.mean_bits;
  plan.gpu_layers = formats.gpu_layers;
  plan.experts_on_host = formats.experts_on_host;
  plan.card_split = formats.card_split;
  plan.main_card = formats.main_card;
  plan.card_shares = formats.card_shares;
  plan.activations = formats.activations;
  plan.weights = formats.weights.value_or(s.model->weight_format);
}

PlanDomain domain_of(const Setup& s, const PlanRequest& fixed, const Plan& plan) {
  PlanDomain d = formats_of(s, fixed);
  d.tensor = {plan.tensor};
  d.expert = {plan.expert};
  d.context = {plan.context};
  d.expert_tensor = {expert_slices(plan)};
  d.context_exchange = {plan.context_exchange};
  d.micro_batch = {std::max(1, plan.micro_batch)};
  d.with_sequence_parallel = plan.sequence_parallel;
  d.without_sequence_parallel = !plan.sequence_parallel;
  d.batches = batches_of(*s.model, s.job, s.engine, plan);
  return d;
}

Result<Tables> prepare_for(const Setup& s, const PlanDomain& domain) {
  return prepare(*s.model, s.job, s.cluster, s.engine, *s.calibration, s.usable, domain);
}

std::optional<Message> illegal(const Setup& s, const Plan& asked) {
  Plan plan = asked;
  // Of the checkpoint's own format each matrix says itself whether it is stored in it.
  if (plan.weights == s.model->weight_format) plan.weights = Format::bf16;
  if (plan.tensor > 1 && !s.engine.tensor_parallel)
    return message(DecideMessage::engine_without_tensor_parallel, s.engine.id);
  if (plan.pipeline > 1 && !s.engine.pipeline_parallel)
    return message(DecideMessage::engine_without_pipeline_parallel, s.engine.id);
  if (!s.stack) {
    if (plan.tensor * plan.pipeline * plan.context * plan.expert > 1)
      return message(DecideMessage::graphs_divide_by_data, s.model->id);
    return std::nullopt;
  }
  if (const Stack* source = source_stack(*s.model))
    if (auto m = check_split(*source, plan, !s.training)) return m;
  return check_split(*s.stack, plan, !s.training);
}

const char* flag_of(const Message& reason) {
  struct Of {
    PlanMessage reason;
    const char* flag;
  };
  static constexpr Of kFlags[] = {{PlanMessage::heads_do_not_divide, "--tp"},
                                  {PlanMessage::kv_heads_do_not_divide, "--tp"},
                                  {PlanMessage::width_does_not_divide, "--tp"},
                                  {PlanMessage::groups_do_not_divide, "--tp"},
                                  {PlanMessage::mixer_groups_do_not_divide, "--tp"},
                                  {PlanMessage::experts_do_not_divide, "--ep"},
                                  {PlanMessage::no_experts, "--ep"},
                                  {PlanMessage::expert_group, "--ep"},
                                  {PlanMessage::fewer_layers_than_stages, "--pp"},
                                  {PlanMessage::layers_indivisible, "--pp"},
                                  {PlanMessage::zero_with_pipeline, "--zero"}};
  for (const Of& f : kFlags)
    if (message_id(f.reason) == reason.id) return f.flag;
  if (message_id(DecideMessage::engine_without_tensor_parallel) == reason.id) return "--tp";
  if (message_id(DecideMessage::engine_without_pipeline_parallel) == reason.id) return "--pp";
  return "--on";
}

namespace {

// The division that the engine has instead of the one that was asked for.
std::optional<Message> instead_of(const Setup& s, const PlanRequest& fixed, const Message& reason) {
  const bool tensor = message_id(DecideMessage::engine_without_tensor_parallel) == reason.id;
  const bool pipeline = message_id(DecideMessage::engine_without_pipeline_parallel) == reason.id;
  if (!tensor && !pipeline) return std::nullopt;
  const char* flag = tensor && s.engine.pipeline_parallel   ? "--pp "
                     : pipeline && s.engine.tensor_parallel ? "--tp "
                                                            : "--dp ";
  const std::int32_t ranks = (tensor ? fixed.tensor : fixed.pipeline).value_or(2);
  return message(DecideMessage::try_flags, flag + std::to_string(ranks));
}

}  // namespace

Error no_plan(const Setup& s, const PlanRequest& fixed, const std::optional<Message>& reason) {
  const int cards = s.cluster.count();
  if (reason)
    return {ErrorCode::bad_argument, *reason, flag_of(*reason), instead_of(s, fixed, *reason)};
  std::int64_t ranks = 1;
  for (const auto& degree : {fixed.tensor, fixed.pipeline, fixed.context, fixed.data})
    ranks *= degree.value_or(1);
  if (ranks > 1 && cards % ranks != 0) {
    const std::int64_t below = cards / ranks * ranks;
    return {ErrorCode::bad_argument,
            message(DecideMessage::degrees_leave_cards, ranks, cards, below > 0 ? below : ranks,
                    below + ranks > ranks ? below + ranks : 2 * ranks),
            "--on", std::nullopt};
  }
  return {ErrorCode::bad_argument, message(DecideMessage::no_plan_divides, cards), "--on",
          std::nullopt};
}

std::int32_t largest_batch(const MemoryModel& memory, const Setup& s, const Plan& plan) {
  double most = memory.capacity(plan).max_sequences;
  if (s.engine.max_sequences > 0)
    most = std::min(most, static_cast<double>(s.engine.max_sequences * s.engine.attention_ranks));
  // Beyond this a larger batch of items saves nothing that the tables could show.
  if (!s.stack || !s.stack->generates) most = std::min(most, 1024.0);
  if (auto batch = std::get_if<Batch>(&s.job); batch && batch->requests)
    most = std::min(most, std::ceil(*batch->requests / plan.data));
  return static_cast<std::int32_t>(std::clamp(most, 1.0, 65536.0));
}

Result<Plan> default_plan(Setup& s, const PlanRequest& fixed) {
  Plan p;
  apply_formats(p, formats_of(s, fixed), s);
  int cards = s.cluster.count();
  auto assume = [&](const char* input, const char* degree, int value) {
    s.assumptions.push_back({input, message(DecideMessage::assumed_degree, degree, value)});
  };
  p.tensor = fixed.tensor.value_or(1);
  p.pipeline = fixed.pipeline.value_or(1);
  p.context = fixed.context.value_or(1);
  p.data = fixed.data.value_or(1);
  p.virtual_stages = fixed.virtual_stages.value_or(1);
  auto product = [&] { return std::int64_t{1} * p.tensor * p.pipeline * p.context * p.data; };
  if (product() < cards && cards % product() == 0) {
    int rest = static_cast<int>(cards / product());
    if (s.training) {
      if (!fixed.data) {
        p.data *= rest;
        if (rest > 1) assume("--dp", "data parallel", p.data);
      }
    } else if (s.engine.default_parallelism == Parallelism::layers && !fixed.pipeline) {
      p.pipeline *= rest;
      if (rest > 1) assume("--pp", "pipeline", p.pipeline);
    } else if (!fixed.tensor && s.engine.tensor_parallel) {
      // The largest tensor degree that divides the model stays inside a node; the rest replicate.
      int tensor = 1;
      for (int t = 1; t <= std::min(rest, s.cluster.per_node); ++t) {
        Plan trial = p;
        trial.tensor = t;
        if (rest % t == 0 && !illegal(s, trial)) tensor = t;
      }
      p.tensor = tensor;
      if (tensor > 1) assume("--tp", "tensor parallel", tensor);
      if (!fixed.data && rest / tensor > 1) {
        p.data *= rest / tensor;
        assume("--dp", "data parallel", p.data);
      }
    } else if (!fixed.data) {
      p.data *= rest;
      if (rest > 1) assume("--dp", "data parallel", p.data);
    }
  }
  if (product() != cards)
    return fail(ErrorCode::bad_argument,
                message(DecideMessage::degrees_do_not_multiply, write_plan(p),
                        static_cast<std::int64_t>(product()), cards),
                "--tp");
  p.expert = fixed.expert.value_or(1);
  if (!s.training) {
    if (const std::int64_t layers = layers_of(s);
        s.engine.remainder_last && p.pipeline > 1 && p.pipeline < layers)
      p.last_stage_layers =
          static_cast<std::int32_t>(layers - (p.pipeline - 1) * (layers / p.pipeline));
    p.micro_batch = fixed.micro_batch.value_or(0);
    if (p.micro_batch == 0) {
      p.micro_batch = 1;
      if (std::holds_alternative<Batch>(s.job)) {
        apply_formats(p, formats_of(s, fixed), s);
        auto memory = MemoryModel::prepare(*s.model, s.job, s.cluster, s.engine, s.usable);
        if (!memory) return tl::unexpected(memory.error());
        p.micro_batch = largest_batch(*memory, s, p);
      }
    }
  } else {
    p.sequence_parallel = fixed.sequence_parallel.value_or(p.tensor > 1);
    p.recompute = fixed.recompute.value_or(Recompute::none);
    std::int64_t per_rank = std::max<std::int64_t>(1, s.global_batch / p.data);
    p.zero = fixed.zero.value_or(static_cast<std::int32_t>(s.engine.default_zero));
    // On one replica ZeRO divides nothing; ZeRO-3 is still how weights stay in host memory.
    if (p.data * p.context == 1) p.zero = fixed.offload_weights.value_or(false) ? 3 : 0;
    p.micro_batch = fixed.micro_batch.value_or(0);
    bool free_micro_batch = p.micro_batch == 0;
    p.recipe = fixed.recipe.value_or(recipe_of(s.engine));
    take_switches(fixed, p);
    if (free_micro_batch) {
      // The largest micro-batch that divides a rank's share and fits: what people end up with.
      auto memory = MemoryModel::prepare(*s.model, s.job, s.cluster, s.engine, s.usable);
      if (!memory) return tl::unexpected(memory.error());
      apply_formats(p, formats_of(s, fixed), s);
      p.micro_batch = 1;
      for (std::int32_t b = 2; b <= 64 && per_rank % b == 0; b *= 2) {
        Plan trial = p;
        trial.micro_batch = b;
        trial.accumulation = static_cast<std::int32_t>(per_rank / b);
        if (!memory->fits(trial)) break;
        p.micro_batch = b;
      }
      assume("--micro-batch", "micro-batch", p.micro_batch);
    }
    p.accumulation = static_cast<std::int32_t>(std::max<std::int64_t>(1, per_rank / p.micro_batch));
    if (const std::int64_t timed = std::int64_t{1} * p.data * p.micro_batch * p.accumulation;
        timed != s.global_batch)
      s.assumptions.push_back({"--global-batch", message(DecideMessage::assumed_whole_shares,
                                                         s.global_batch, p.data, timed)});
  }
  apply_formats(p, formats_of(s, fixed), s);
  return p;
}

}  // namespace trigon
