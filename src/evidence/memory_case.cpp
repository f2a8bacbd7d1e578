// Rows of memory measurements.

#include <algorithm>
#include <cstring>

#include "evidence/messages.hpp"
#include "evidence/resolve.hpp"

namespace trigon {

namespace {

using Terms = std::vector<MemoryTerm>;

// What torch's allocator holds: neither the device context nor what libraries take beside it.
const Terms kAllocated = {MemoryTerm::weights,   MemoryTerm::kv_cache,  MemoryTerm::activations,
                          MemoryTerm::logits,    MemoryTerm::gradients, MemoryTerm::master_weights,
                          MemoryTerm::optimizer, MemoryTerm::adapters,  MemoryTerm::gathered};

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

// What an engine that keeps the embedding in host memory leaves out of its cards' weights.
double bytes_on_host(const Case& c) {
  const std::string_view engine = c.question.engine;
  if (engine.find("llama.cpp") == std::string_view::npos) return 0;
  const Stack& s = *language_stack(*c.model);
  if (!s.embedding || s.tied) return 0;
  const Format f = c.question.plan.weights.value_or(s.embedding->format);
  const auto n = bytes_of(f, s.embedding->in, s.embedding->out);
  return n ? static_cast<double>(n->value()) : 0;
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
  if (engine == "transformers+peft") return "reserved";
  for (const char* torch : {"transformers", "litgpt", "megatron-lm", "torchtune"})
    if (engine.substr(0, std::strlen(torch)) == torch) return "allocated";
  return "device";
}

// Weights and caches of all cards together do not depend on how layers are dealt out.
bool one_card_says_all(const Row& row) {
  const std::string_view component = row.text("component");
  return (component == "weights" || component == "kv_cache") && span_of(row) != "rank";
}

std::optional<Refusal> take_component(const Row& row, Case& c) {
  const std::string_view component = row.text("component"), unit = row.text("unit");
  const std::string_view engine = row.text("engine"), measure = measure_of(row);
  Readout& r = c.readout;
  if (component == "fits") {
    r.kind = Readout::Kind::fits;
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
  r.over_ranks = span == "total" || span == "device_total" || span == "file";
  if (span == "file") r.plus += bytes_on_host(c);
  if (component == "peak_total") {
    r.terms = kAllocated;
    if (measure == "reserved") r.terms = with(kAllocated, {MemoryTerm::fragmentation});
    if (measure == "device")
      r.terms = with(kAllocated, {MemoryTerm::fragmentation, MemoryTerm::context,
                                  MemoryTerm::collectives, MemoryTerm::graphs});
  } else if (component == "steady_state") {
    r.terms = {MemoryTerm::weights, MemoryTerm::gradients, MemoryTerm::master_weights,
               MemoryTerm::optimizer, MemoryTerm::adapters};
  } else if (component == "weights") {
    r.terms = {MemoryTerm::weights};
  } else if (component == "kv_cache") {
    r.terms = {MemoryTerm::kv_cache};
  } else if (component == "activations") {
    r.terms = {MemoryTerm::activations, MemoryTerm::logits};
  } else if (component == "compute_buffer") {
    // vLLM's is the pool of its captured graphs; llama.cpp's the buffers of one forward.
    r.terms = engine == "vllm" ? Terms{MemoryTerm::graphs}
                               : Terms{MemoryTerm::activations, MemoryTerm::logits};
  } else if (component == "non_torch") {
    r.terms = {MemoryTerm::context, MemoryTerm::collectives};
  } else if (component == "cuda_context") {
    r.terms = {MemoryTerm::context};
  } else {
    return Refusal{RefusalReason::metric_not_supported, std::string(component)};
  }
  return std::nullopt;
}

std::optional<Refusal> take_training(const Row& row, std::string_view task, Case& c) {
  JobRequest& j = c.question.job;
  PlanRequest& p = c.question.plan;
  j.kind = task == "train-full" ? JobKind::train : JobKind::finetune;
  if (task == "train-lora") j.method = TuneMethod::lora;
  if (task == "train-qlora") j.method = TuneMethod::qlora;
  if (!row.text("adapter").empty())
    return Refusal{RefusalReason::method_not_supported, std::string(row.text("adapter"))};
  j.rank = row.whole("lora_rank");
  // litgpt adapts queries and values unless its flags say more.
  if (const std::string_view targets = row.text("lora_targets"); !targets.empty()) {
    const auto read = adapter_targets(targets);
    if (!read) return Refusal{RefusalReason::bad_value, "lora_targets"};
    j.targets = *read;
  } else if (row.text("engine") == "litgpt") {
    j.targets = kQueryValue;
  }
  const auto sequence = row.whole("context_len");
  if (!sequence || *sequence < 1) return Refusal{RefusalReason::input_missing, "context_len"};
  j.sequence = sequence;
  const std::int64_t batch = row.whole("batch").value_or(1);
  if (batch < 1 || batch > 1000000) return Refusal{RefusalReason::bad_value, "batch"};
  p.micro_batch = static_cast<std::int32_t>(batch);
  j.global_batch = row.whole("global_batch", {"global-batch-size", "global_batch_size"});
  if (!j.global_batch) j.global_batch = batch * p.data.value_or(1);
  j.tokens = static_cast<double>(*sequence) * static_cast<double>(*j.global_batch);
  if (const auto z = row.whole("zero_stage"); z && *z >= 0 && *z <= 3)
    p.zero = static_cast<std::int32_t>(*z);
  const std::string_view recompute = row.text("recompute");
  if (recompute == "full") p.recompute = Recompute::full;
  if (recompute == "selective") p.recompute = Recompute::selective;
  if (recompute == "none") p.recompute = Recompute::none;
  return std::nullopt;
}

std::optional<Refusal> take_inference(const Row& row, Case& c) {
  JobRequest& j = c.question.job;
  j.kind = JobKind::serve;
  j.concurrency = static_cast<double>(std::max<std::int64_t>(1, row.whole("batch").value_or(1)));
  const std::string_view component = row.text("component");
  auto context = row.whole("context_len");
  if (!context) {
    // Weights and what the runtime takes do not depend on the context.
    if (component != "weights" && component != "non_torch" && component != "cuda_context")
      return Refusal{RefusalReason::input_missing, "context_len"};
    context = 2;
  }
  if (*context < 2 || *context > 100000000) return Refusal{RefusalReason::bad_value, "context_len"};
  const std::int64_t prompt =
      std::clamp<std::int64_t>(row.whole("prompt_len").value_or(*context - 1), 1, *context - 1);
  j.input_tokens = prompt;
  j.output_tokens = *context - prompt;
  j.context = context;
  if (const auto kv = row.text("kv_format"); !kv.empty()) {
    c.question.plan.kv = format_of(kv);
    if (!c.question.plan.kv) return Refusal{RefusalReason::format_unknown, std::string(kv)};
  }
  if (const auto fa = row.text("fa"); !fa.empty()) c.question.plan.flash_attention = fa == "1";
  // ik_llama.cpp: 0 caches every head, 1 to 3 the latent.
  if (const auto mla = row.whole("mla")) {
    // 1 without flash attention keeps a transposed copy as well.
    if (*mla == 1 && row.text("fa") != "1")
      return Refusal{RefusalReason::method_not_supported, "mla"};
    c.question.plan.latent_cache = *mla > 0;
  }
  if (const auto n = row.whole("n_ubatch"); n && *n > 0) c.question.plan.chunk_tokens = n;
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
  if (!row.text("gpu").empty()) return take_hardware(row, names, cards, 0, c);
  const std::string_view component = row.text("component");
  const bool pool = row.text("engine") == "vllm" || row.text("engine") == "sglang";
  if (component == "fits" || component == "kv_tokens" || component == "gpu_blocks" ||
      (component == "kv_cache" && pool))
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
  if (!offload.empty() && component != "kv_cache" && span_of(row) != "file")
    return Refusal{RefusalReason::offloading, std::string(offload)};
  if (auto r = take_weights(row, names, c)) return *r;
  if (auto r =
          take_engine(row.text("engine"), row.text("engine_version"), row.text("date"), names, c))
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
    if (auto r = take_training(row, task, c)) return *r;
  } else {
    if (auto r = take_inference(row, c)) return *r;
  }
  if (auto r = take_component(row, c)) return *r;
  allow_length(c, c.question.job.context.value_or(c.question.job.sequence.value_or(0)));
  return c;
}

}  // namespace trigon
