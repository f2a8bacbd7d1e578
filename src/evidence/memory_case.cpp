// Rows of memory measurements.

#include <algorithm>
#include <cstring>

#include "evidence/ggml_case.hpp"
#include "evidence/messages.hpp"
#include "evidence/resolve.hpp"

namespace trigon {

namespace {

using Terms = std::vector<MemoryTerm>;

// What torch's allocator holds: neither the device context nor what libraries take beside it.
const Terms kAllocated = {
    MemoryTerm::weights,  MemoryTerm::kv_cache,  MemoryTerm::activations,    MemoryTerm::logits,
    MemoryTerm::media,    MemoryTerm::gradients, MemoryTerm::master_weights, MemoryTerm::optimizer,
    MemoryTerm::adapters, MemoryTerm::gathered,  MemoryTerm::workspaces};

Terms with(Terms terms, std::initializer_list<MemoryTerm> more) {
  terms.insert(terms.end(), more);
  return terms;
}

std::optional<double> unit_bytes(std::string_view unit) {
  if (unit == "GiB") return kGi;
  if (unit == "MiB") return kMi;
  if (unit == "KiB") return kKi;
  if (unit == "GB") return 1e9;
  if (unit == "MB") return 1e6;
  if (unit == "bytes" || unit == "B") return 1;
  return std::nullopt;
}

// What a number covers, and where it was read, if the row does not say: logs of llama.cpp give
// sums over cards, frameworks on torch the allocator's count of one card.
std::string_view span_of(const Row& row) {
  const std::string_view span = row.text("span"), component = row.text("component");
  if (!span.empty()) return span;
  const bool sums = row.text("engine").find("llama.cpp") != std::string_view::npos;
  return sums && (component == "weights" || component == "kv_cache") ? "total" : "rank";
}
std::string_view measure_of(const Row& row) {
  const std::string_view measure = row.text("measure"), engine = row.text("engine");
  if (!measure.empty()) return measure;
  if (row.text("component") == "weights") return "allocated";
  if (engine == "transformers+peft") return "reserved";
  for (const char* torch : {"transformers", "litgpt", "megatron-lm", "torchtune", "diffusers"})
    if (engine.substr(0, std::strlen(torch)) == torch) return "allocated";
  return "device";
}

// Engines that take what is left for a pool of caches; their caches are that pool.
bool has_pool(std::string_view engine) {
  for (const char* pooled : {"vllm", "sglang", "tensorrt-llm", "tgi", "lmdeploy", "pegainfer"})
    if (engine == pooled) return true;
  return false;
}

// Weights and caches of all cards together do not depend on how layers are dealt out.
bool one_card_says_all(const Row& row) {
  const std::string_view component = row.text("component");
  return (component == "weights" || component == "kv_cache") && span_of(row) != "rank" &&
         !has_pool(row.text("engine"));
}

std::optional<Refusal> take_component(const Row& row, Case& c) {
  const std::string_view component = row.text("component"), unit = row.text("unit");
  const std::string_view engine = row.text("engine"), measure = measure_of(row);
  Readout& r = c.readout;
  if (component == "fits") {
    r.kind = Readout::Kind::fits;
    return std::nullopt;
  }
  if (component == "kv_cache" && has_pool(engine)) {
    const auto bytes = unit_bytes(unit);
    if (!bytes) return Refusal{RefusalReason::bad_value, "unit"};
    c.measured *= *bytes;
    r.metric = Metric::kv_pool_bytes;
    return std::nullopt;
  }
  if (component == "kv_tokens" || component == "gpu_blocks") {
    const double block = static_cast<double>(row.whole("block_size").value_or(16));
    if (component == "gpu_blocks") c.measured *= block;
    r.metric = Metric::kv_capacity_tokens;
    return std::nullopt;
  }
  const auto scale = unit_bytes(unit);
  if (!scale) return Refusal{RefusalReason::bad_value, "unit"};
  c.measured *= *scale;
  r.kind = Readout::Kind::memory_terms;
  const std::string_view span = span_of(row);
  r.last_stage = span == "last_stage";
  r.first_stage = span == "first_stage";
  r.over_ranks = span == "total" || span == "device_total" || span == "file";
  if (by_ggml(row)) take_ggml_component(row, span, c);
  if (component == "peak_total") {
    r.terms = kAllocated;
    if (measure == "reserved") r.terms = with(kAllocated, {MemoryTerm::fragmentation});
    if (measure == "device" || measure == "eager")
      r.terms = with(kAllocated, {MemoryTerm::fragmentation, MemoryTerm::context,
                                  MemoryTerm::libraries, MemoryTerm::collectives});
    if (measure == "device") r.terms.push_back(MemoryTerm::graphs);
  } else if (component == "steady_state") {
    r.terms = {MemoryTerm::weights,   MemoryTerm::gradients, MemoryTerm::master_weights,
               MemoryTerm::optimizer, MemoryTerm::adapters,  MemoryTerm::workspaces};
  } else if (component == "weights") {
    r.terms = {MemoryTerm::weights};
    if (measure == "device") r.terms = with(r.terms, {MemoryTerm::context, MemoryTerm::libraries});
  } else if (component == "kv_cache") {
    r.terms = {MemoryTerm::kv_cache};
  } else if (component == "activations") {
    r.terms = {MemoryTerm::activations, MemoryTerm::logits, MemoryTerm::media};
  } else if (component == "compute_buffer") {
    // vLLM's is the pool of its captured graphs; llama.cpp's the buffers of one forward.
    r.terms = engine == "vllm" ? Terms{MemoryTerm::graphs}
                               : Terms{MemoryTerm::activations, MemoryTerm::logits};
  } else if (component == "non_torch") {
    // What grew since the engine started has no context in it.
    r.terms = {MemoryTerm::libraries, MemoryTerm::collectives};
    if (measure != "growth") r.terms.push_back(MemoryTerm::context);
  } else if (component == "cuda_context") {
    r.terms = {MemoryTerm::context};
  } else {
    return Refusal{RefusalReason::metric_not_supported, std::string(component)};
  }
  return std::nullopt;
}

std::optional<bool> stated(const Row& row, const char* column) {
  const std::string_view text = row.text(column);
  return text.empty() ? std::nullopt : std::optional<bool>(text == "1");
}

std::optional<std::int32_t> small(const Row& row, const char* column) {
  const auto n = row.whole(column);
  if (!n || *n < 1 || *n > 1000000) return std::nullopt;
  return static_cast<std::int32_t>(*n);
}

// Names of Megatron's --recompute-modules, by spaces; others are left out.
RecomputeModules modules_of(std::string_view names) {
  RecomputeModules m;
  m.attention = false;
  while (!names.empty()) {
    const auto space = names.find(' ');
    const std::string_view name = names.substr(0, space);
    if (name == "core_attn") m.attention = true;
    if (name == "layernorm") m.norms = true;
    if (name == "mlp") m.mlp = true;
    if (name == "moe_act") m.expert_activation = true;
    if (name == "moe") m.experts = true;
    if (name == "mla_up_proj") m.latent_up = true;
    names = space == std::string_view::npos ? std::string_view() : names.substr(space + 1);
  }
  return m;
}

// What a framework's flags say beside degrees and batch.
void take_switches(const Row& row, PlanRequest& p) {
  if (const auto fa = row.text("fa"); !fa.empty()) p.flash_attention = fa == "1";
  p.dropout = stated(row, "dropout");
  p.deterministic = stated(row, "deterministic");
  p.fused_loss = stated(row, "fused_loss");
  p.grouped_experts = stated(row, "grouped_experts");
  p.eight_bit_weights = stated(row, "eight_bit_weights");
  if (row.whole("mtp_layers").value_or(0) > 0) p.trains_drafts = true;
  p.offload_activations = stated(row, "offload_activations");
  p.reshard = stated(row, "reshard");
  p.reference = stated(row, "reference");
  p.expert_tensor = small(row, "etp");
  p.optimizer_groups = small(row, "optimizer_groups");
  p.interleave_group = small(row, "interleave_group");
  p.last_stage_layers = small(row, "last_layers");
  p.recompute_layers = small(row, "recompute_layers");
  if (const auto optimizer = optimizer_of(row.text("optimizer"))) p.optimizer = optimizer;
  if (const auto names = row.text("recompute_modules"); !names.empty())
    p.recompute_modules = modules_of(names);
}

std::optional<Refusal> take_training(const Row& row, std::string_view task, Case& c) {
  JobRequest& j = c.question.job;
  PlanRequest& p = c.question.plan;
  j.kind = task == "train-full" ? JobKind::train : JobKind::finetune;
  if (task == "train-lora") j.method = TuneMethod::lora;
  if (task == "train-qlora") j.method = TuneMethod::qlora;
  if (auto r = take_adapters(row, c)) return r;
  auto sequence = row.whole("context_len");
  // What is loaded before the first step does not depend on it.
  if (!sequence && row.text("component") == "weights") sequence = 1;
  if (!sequence || *sequence < 1) return Refusal{RefusalReason::input_missing, "context_len"};
  j.sequence = sequence;
  j.input_tokens = row.whole("source_len");
  const std::int64_t batch = row.whole("batch").value_or(1);
  if (batch < 1 || batch > 1000000) return Refusal{RefusalReason::bad_value, "batch"};
  p.micro_batch = static_cast<std::int32_t>(batch);
  j.global_batch = row.whole("global_batch", {"global-batch-size", "global_batch_size"});
  if (!j.global_batch) j.global_batch = batch * p.data.value_or(1);
  j.tokens = static_cast<double>(*sequence) * static_cast<double>(*j.global_batch);
  take_switches(row, p);
  if (const auto z = row.whole("zero_stage"); z && *z >= 0 && *z <= 3)
    p.zero = static_cast<std::int32_t>(*z);
  const std::string_view recompute = row.text("recompute");
  if (recompute == "full") p.recompute = Recompute::full;
  if (recompute == "selective") p.recompute = Recompute::selective;
  if (recompute == "none") p.recompute = Recompute::none;
  return std::nullopt;
}

// One pass of a network over the items of a batch.
std::optional<Refusal> take_items(const Row& row, Case& c) {
  const std::int64_t batch = std::max<std::int64_t>(1, row.whole("batch").value_or(1));
  if (batch > 65536) return Refusal{RefusalReason::bad_value, "batch"};
  c.question.job.kind = JobKind::batch;
  c.question.job.requests = static_cast<double>(batch);
  c.question.plan.micro_batch = static_cast<std::int32_t>(batch);
  return std::nullopt;
}

// A step of training over them.
std::optional<Refusal> take_item_training(const Row& row, std::string_view task, Case& c) {
  const bool adapts = task == "train-lora";
  if (task != "train-full" && !adapts)
    return Refusal{RefusalReason::method_not_supported, std::string(task)};
  if (auto r = take_items(row, c)) return r;
  JobRequest& j = c.question.job;
  PlanRequest& p = c.question.plan;
  j.kind = adapts ? JobKind::finetune : JobKind::train;
  if (adapts) {
    // examples/amused/train_amused.py adapts these with rank 16 unless told otherwise (--lora_r,
    // --lora_target_modules) and leaves the network in 32 bit under autocast.
    j.method = TuneMethod::lora;
    if (p.weights) p.activations = p.weights;
    p.weights = Format::f32;
    j.targets = {AdapterTarget::query, AdapterTarget::key, AdapterTarget::value};
  }
  j.requests.reset();
  const double steps = static_cast<double>(row.whole("global_batch").value_or(0)) /
                       std::max(1, *p.micro_batch * p.data.value_or(1));
  j.global_batch = static_cast<std::int64_t>(*p.micro_batch) * p.data.value_or(1) *
                   std::max<std::int64_t>(1, static_cast<std::int64_t>(steps));
  j.samples = static_cast<double>(*j.global_batch);
  j.epochs = 1;
  if (auto r = take_adapters(row, c)) return r;
  if (const auto optimizer = optimizer_of(row.text("optimizer"))) p.optimizer = optimizer;
  if (const std::string_view recompute = row.text("recompute"); recompute == "full")
    p.recompute = Recompute::full;
  return std::nullopt;
}

std::optional<Refusal> take_inference(const Row& row, Case& c) {
  if (whole_items(c)) return take_items(row, c);
  JobRequest& j = c.question.job;
  j.kind = JobKind::serve;
  j.concurrency = static_cast<double>(std::max<std::int64_t>(1, row.whole("batch").value_or(1)));
  const std::string_view component = row.text("component");
  auto context = row.whole("context_len");
  if (!context) {
    // Weights and what the runtime takes do not depend on the context. A server that is given none
    // takes the model's own.
    const Stack* stack = language_stack(*c.model);
    const bool server = has_pool(row.text("engine")) && stack && stack->max_context;
    if (server)
      context = *stack->max_context;
    else if (component == "weights" || component == "non_torch" || component == "cuda_context")
      context = 2;
    else
      return Refusal{RefusalReason::input_missing, "context_len"};
  }
  if (*context < 2 || *context > 100000000) return Refusal{RefusalReason::bad_value, "context_len"};
  const std::int64_t prompt =
      std::clamp<std::int64_t>(row.whole("prompt_len").value_or(*context - 1), 1, *context - 1);
  const Stack* source = source_stack(*c.model);
  if (source && source->fixed_length) {
    // The encoder reads inputs of one length only; the context is the decoder's.
    j.output_tokens = context;
  } else {
    j.input_tokens = prompt;
    j.output_tokens = *context - prompt;
    j.context = context;
  }
  if (by_ggml(row)) {
    if (auto r = take_ggml_switches(row, c)) return r;
  } else if (const auto kv = row.text("kv_format"); !kv.empty()) {
    c.question.plan.kv = format_of(kv);
    if (!c.question.plan.kv) return Refusal{RefusalReason::format_unknown, std::string(kv)};
  }
  if (const auto fa = row.text("fa"); !fa.empty()) c.question.plan.flash_attention = fa == "1";
  if (const auto n = row.whole("n_ubatch"); n && *n > 0) c.question.plan.chunk_tokens = n;
  if (const auto n = row.whole("max_sequences"); n && *n > 0) c.question.plan.max_sequences = n;
  if (const auto n = row.whole("captures"); n && *n > 0) c.question.plan.captured_graphs = n;
  c.question.plan.memory_fraction = row.number("gpu_memory_utilization");
  if (const auto f = c.question.plan.memory_fraction; f && (*f <= 0 || *f > 1))
    return Refusal{RefusalReason::bad_value, "gpu_memory_utilization"};
  return std::nullopt;
}

// What a model and its states take does not depend on the card, only what is left of it does: a
// large card stands in where none is stated, except for pools and verdicts.
constexpr const char* kStandInCard = "H100-SXM-80GB";

std::optional<Refusal> take_card(const Row& row, const RowNames& names, std::int64_t cards,
                                 Case& c) {
  const std::string_view component = row.text("component");
  const auto reported = row.number("reported_gib");
  auto state = [&] {
    if (reported && *reported > 0)
      for (Cluster& h : c.hardware) h.card.memory = gibibytes(*reported);
  };
  // Several kinds of cards at once, as ggml's machines have: what they hold does not depend on it.
  const bool any_card = ((by_ggml(row) && component != "fits") || component == "weights") &&
                        names.hardware(row.text("gpu")).empty();
  if (!row.text("gpu").empty() && !any_card) {
    auto refused = take_hardware(row, names, cards, 0, c);
    state();
    return refused;
  }
  if (!reported && (component == "fits" || component == "kv_tokens" || component == "gpu_blocks" ||
                    (component == "kv_cache" && has_pool(row.text("engine")))))
    return Refusal{RefusalReason::hardware_not_stated, "gpu"};
  const auto card = names.hardware(kStandInCard);
  if (card.empty()) return Refusal{RefusalReason::hardware_unknown, kStandInCard};
  MachineColumns m;
  m.accelerator = card.front();
  m.cards = static_cast<int>(std::clamp<std::int64_t>(cards, 1, 1000000));
  m.per_node = std::min(m.cards, 8);
  while (m.cards % m.per_node != 0) --m.per_node;
  auto cluster = names.cluster(m);
  if (!cluster) return Refusal{RefusalReason::hardware_unknown, kStandInCard};
  c.hardware.push_back(std::move(*cluster));
  state();
  c.assumptions.push_back({"gpu", message(EvidenceMessage::hardware_assumed, kStandInCard)});
  return std::nullopt;
}

}  // namespace

CaseOrRefusal read_memory_case(const Row& row, const RowNames& names) {
  Case c;
  if (auto r = take_model(row, names, c)) return *r;
  if (auto r = take_identity(row, c, row.text("component") == "fits")) return *r;
  const std::string_view offload = row.text("offload");
  if (offload == "other_method")
    return Refusal{RefusalReason::method_not_supported, std::string(offload)};
  // A cache and a whole file are the same wherever their parts lie.
  const std::string_view component = row.text("component");
  const bool trains = row.text("task").substr(0, 5) == "train";
  const bool of_plan = trains && (offload == "weights+optimizer" || offload == "optimizer");
  if (of_plan) c.question.plan.offload_optimizer = true;
  if (of_plan && offload != "optimizer") c.question.plan.offload_weights = true;
  if (offload == "model" && whole_items(c))
    c.question.plan.offload_weights = true;
  else if (!offload.empty() && !of_plan && !by_ggml(row) && component != "kv_cache" &&
           span_of(row) != "file")
    return Refusal{RefusalReason::offloading, std::string(offload)};
  // What a step and the runtime take does not depend on how weights are stored.
  const bool without_weights =
      component == "activations" || component == "non_torch" || component == "cuda_context";
  if (auto r = by_ggml(row) ? take_ggml_weights(row, names, c) : take_weights(row, names, c))
    if (!(without_weights && r->reason == RefusalReason::format_unknown)) return *r;
  // A checkpoint is no engine: whichever loads its tensors as they are says the same.
  const std::string_view engine = row.text("engine");
  if (auto r =
          take_engine(engine == "safetensors" ? "transformers" : engine, row.text("engine_version"),
                      by_ggml(row) ? ggml_date(row) : row.text("date"), names, c))
    return *r;

  PlanRequest& p = c.question.plan;
  p.tensor = degree(row, "tp");
  p.pipeline = degree(row, "pp", {"pipeline-model-parallel-size", "pipeline_model_parallel_size"});
  p.virtual_stages = degree(row, "vpp", {"num-virtual-stages-per-pipeline-rank"});
  p.context = degree(row, "cp", {"context-parallel-size"});
  p.expert = degree(row, "ep", {"expert-model-parallel-size", "expert_model_parallel_size"});
  if (row.flag("sequence_parallel") || row.text("", {"sequence-parallel"}) == "true")
    p.sequence_parallel = true;
  else if (row.text("engine") == "megatron-lm")
    p.sequence_parallel = false;  // its flag is off unless given
  const std::int64_t ranks =
      std::int64_t{p.tensor.value_or(1)} * p.pipeline.value_or(1) * p.context.value_or(1);
  std::int64_t cards = row.whole("n_gpus").value_or(0);
  const std::string_view task = row.text("task");
  const bool training = task.substr(0, 5) == "train";
  // Several runs in one log list their cards one after the other.
  if (const auto used = by_ggml(row) ? cards_used(row) : std::nullopt)
    cards =
        cards > 0 ? std::clamp<std::int64_t>(*used, 1, cards) : std::max<std::int64_t>(*used, 1);
  if (one_card_says_all(row)) {
    cards = 1;
    p.tensor = p.pipeline = 1;
  }
  if (cards == 0 && training && row.whole("zero_stage").value_or(0) > 0)
    return Refusal{RefusalReason::input_missing, "n_gpus"};  // states are divided over the cards
  // Megatron's tests run on one node of eight.
  if (cards == 0) cards = training && ranks <= 8 && row.text("engine") == "megatron-lm" ? 8 : ranks;
  if (training && cards % ranks == 0) p.data = static_cast<std::int32_t>(cards / ranks);
  if (row.text("n_gpus").empty() && c.assumptions.size() < 8)
    c.assumptions.push_back({"n_gpus", message(EvidenceMessage::one_card, cards)});
  if (auto r = take_card(row, names, cards, c)) return *r;
  if (training) {
    if (auto r = whole_items(c) ? take_item_training(row, task, c) : take_training(row, task, c))
      return *r;
  } else {
    if (auto r = take_inference(row, c)) return *r;
  }
  if (auto r = take_component(row, c)) return *r;
  allow_length(c, c.question.job.context.value_or(c.question.job.sequence.value_or(0)));
  return c;
}

}  // namespace trigon
