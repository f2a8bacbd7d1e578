// Rows of training throughput.

#include <algorithm>
#include <cctype>
#include <cmath>

#include "evidence/messages.hpp"
#include "evidence/resolve.hpp"

namespace trigon {

namespace {

// "megatron-bridge 26.04.01" is a name and a version; "torchtitan 2024-12" a name and a date;
// "FlagPerf megatron" is a framework inside a benchmark. MLPerf entries list the containers of all
// their benchmarks; language models ran on NeMo in those for NVIDIA's cards, ResNet-50 and 3D U-Net
// on MXNet (mlcommons/training_results_v4.0, NVIDIA/benchmarks/*/implementations), other networks
// on PyTorch with fused layers.
struct Framework {
  std::string_view name, version, date;
};
Framework split_framework(std::string_view text, std::string_view model, bool items) {
  if (text.substr(0, 7) == "mlperf-") {
    const bool mxnet = model == "resnet50" || model == "unet3d-128";
    return {mxnet ? "MXNet" : items ? "apex" : "NeMo", {}, {}};
  }
  if (text.substr(0, 9) == "FlagPerf ") text.remove_prefix(9);
  const auto space = text.rfind(' ');
  if (space == std::string_view::npos || space + 1 == text.size() ||
      !std::isdigit(static_cast<unsigned char>(text[space + 1])))
    return {text, {}, {}};
  const std::string_view tail = text.substr(space + 1);
  if (tail.size() >= 7 && tail[4] == '-') return {text.substr(0, space), {}, tail};
  return {text.substr(0, space), tail, {}};
}

enum class FlopCount : std::uint8_t {
  ours,                    // 6N-style, causal attention halved
  model_causal_attention,  // the same, N of all parameters
  model_full_attention,    // 6N + 12 L h s
  megatron_hardware        // 96 L h^2 (1 + s/6h + V/16Lh): GPT, full recompute counted
};

FlopCount flop_count(const Row& row) {
  const std::string_view stated = row.text("flops"), framework = row.text("framework");
  if (stated == "model_causal_attention") return FlopCount::model_causal_attention;
  if (stated == "model_full_attention" || framework == "MaxText")
    return FlopCount::model_full_attention;
  if (stated == "megatron_hardware" ||
      (row.text("recompute") == "full" && framework.substr(0, 8) == "Megatron"))
    return FlopCount::megatron_hardware;
  return FlopCount::ours;
}

// Floating-point operations that the convention counts for one token (forward and backward).
double flops_per_token(FlopCount how, const Model& model, double sequence) {
  const Stack& s = *language_stack(model);
  const double parameters = static_cast<double>(count_parameters(model).active);
  const double layers = static_cast<double>(s.layers()), hidden = static_cast<double>(s.hidden);
  switch (how) {
    case FlopCount::model_causal_attention:
      return 6 * parameters + 6 * layers * hidden * sequence;
    case FlopCount::model_full_attention:
      return 6 * parameters + 12 * layers * hidden * sequence;
    case FlopCount::megatron_hardware:
      return 96 * layers * hidden * hidden *
             (1 + sequence / (6 * hidden) +
              static_cast<double>(s.vocabulary) / (16 * layers * hidden));
    case FlopCount::ours:
      break;
  }
  return 0;
}

std::optional<Refusal> take_metric(const Row& row, Case& c, double sequence) {
  const std::string_view metric = row.text("metric");
  Readout& r = c.readout;
  if (metric == "tokens_per_s_per_gpu") {
    r.metric = Metric::tokens_per_second_per_gpu;
  } else if (metric == "samples_per_s_per_gpu") {
    r.metric = Metric::samples_per_second_per_gpu;
  } else if (metric == "step_s") {
    r.metric = Metric::step_seconds;
  } else if (metric == "mfu" || metric == "hfu") {
    r.metric = metric == "mfu" ? Metric::mfu : Metric::hfu;
    if (c.measured > 1) c.measured /= 100;  // printed in percent
  } else if (metric == "tflops_per_gpu") {
    const FlopCount how = flop_count(row);
    // Several conventions of counting went into one table: where the clock is stated, it decides.
    if (const auto seconds = row.number("", {"sec_per_it"}); seconds && *seconds > 0) {
      c.measured = *seconds;
      r.metric = Metric::step_seconds;
    } else if (how == FlopCount::ours) {
      c.measured *= 1e12;
      r.metric = Metric::model_flops_per_gpu_second;
    } else {
      c.measured *= 1e12;
      r.metric = Metric::tokens_per_second_per_gpu;
      r.scale = flops_per_token(how, *c.model, sequence);
    }
  } else {
    return Refusal{RefusalReason::metric_not_supported, std::string(metric)};
  }
  return std::nullopt;
}

std::optional<Refusal> take_precision(const Row& row, Case& c) {
  const std::string_view precision = row.text("precision");
  PlanRequest& p = c.question.plan;
  if (const auto quant = row.text("quant"); !quant.empty()) {
    p.weights = format_of(quant);
    if (!p.weights) return Refusal{RefusalReason::format_unknown, std::string(quant)};
  }
  if (precision.empty()) return std::nullopt;
  const auto format = format_of(precision);
  if (!format) return Refusal{RefusalReason::format_unknown, std::string(precision)};
  if (precision == "fp32" || precision == "tf32") p.recipe = TrainRecipe::fp32;
  // Training in 8 or 4 bit says so of its products: what flows between them stays in 16.
  const bool narrow = bits_per_element(*format) < 16 && !whole_items(c);
  if (!narrow) p.activations = format;
  if (whole_items(c) || (narrow && !p.weights)) p.weights = format;
  return std::nullopt;
}

std::optional<Refusal> take_method(const Row& row, JobRequest& j) {
  const std::string_view method = row.text("method");
  j.kind = JobKind::finetune;
  if (method == "lora") {
    j.method = TuneMethod::lora;
  } else if (method == "qlora") {
    j.method = TuneMethod::qlora;
  } else if (method == "full" || method.empty()) {
    j.kind = JobKind::train;
  } else {
    return Refusal{RefusalReason::method_not_supported, std::string(method)};
  }
  j.rank = row.whole("lora_rank");
  return std::nullopt;
}

// "cpu": all that the engine can keep on the host between passes, which is weights, gradients and
// optimizer (torch.distributed.fsdp CPUOffload; DeepSpeed's offload_param with offload_optimizer).
std::optional<Refusal> take_offload(const Row& row, PlanRequest& p) {
  const std::string_view offload = row.text("offload");
  if (offload == "cpu")
    p.offload_weights = p.offload_optimizer = true;
  else if (offload == "activations")
    p.offload_activations = true;
  else if (!offload.empty())
    return Refusal{RefusalReason::offloading, std::string(offload)};
  return std::nullopt;
}

}  // namespace

CaseOrRefusal read_train_case(const Row& row, const RowNames& names) {
  Case c;
  if (auto r = take_model(row, names, c)) return *r;
  if (auto r = take_identity(row, c)) return *r;
  JobRequest& j = c.question.job;
  if (auto r = take_method(row, j)) return *r;
  if (auto r = take_precision(row, c)) return *r;

  const Framework f = split_framework(row.text("framework"), row.text("model"),
                                      whole_items(c) || !language_stack(*c.model)->generates);
  const std::string_view date = f.date.empty() ? row.text("date") : f.date;
  if (auto r = take_engine(f.name, f.version, date, names, c)) return *r;

  PlanRequest& p = c.question.plan;
  if (auto r = take_offload(row, p)) return *r;
  p.tensor = degree(row, "tp");
  p.pipeline = degree(row, "pp");
  p.virtual_stages = degree(row, "vpp");
  p.data = degree(row, "dp");
  p.context = degree(row, "cp");
  p.expert = degree(row, "ep");
  p.micro_batch = degree(row, "micro_batch");
  if (const auto z = row.whole("zero_stage"); z && *z >= 0 && *z <= 3)
    p.zero = static_cast<std::int32_t>(*z);
  const std::string_view recompute = row.text("recompute");
  if (recompute == "full") p.recompute = Recompute::full;
  if (recompute == "selective") p.recompute = Recompute::selective;
  if (recompute == "none") p.recompute = Recompute::none;

  const std::int64_t cards = row.whole("n_gpus").value_or(0);
  if (cards < 1) return Refusal{RefusalReason::input_missing, "n_gpus"};
  if (!p.data && p.tensor && p.pipeline) {
    const std::int64_t ranks = std::int64_t{*p.tensor} * *p.pipeline * p.context.value_or(1);
    if (cards % ranks == 0) p.data = static_cast<std::int32_t>(cards / ranks);
  }
  if (auto r = take_hardware(row, names, cards, row.whole("gpus_per_node").value_or(0), c))
    return *r;

  if (whole_items(c)) {
    if (auto r = read_item_training(row, c)) return *r;
    c.tuned = row.flag("tuned");
    if (c.tuned) c.assumptions.push_back({"plan", message(EvidenceMessage::best_legal_plan)});
    return c;
  }
  const auto sequence = row.whole("seq_len");
  if (!sequence || *sequence < 1) return Refusal{RefusalReason::input_missing, "seq_len"};
  j.sequence = sequence;
  j.input_tokens = row.whole("source_len");
  j.global_batch = row.whole("global_batch");
  if (!j.global_batch && p.micro_batch) {
    const std::int64_t replicas = p.data ? *p.data : cards;
    j.global_batch = *p.micro_batch * replicas * row.whole("grad_accum").value_or(1);
  }
  if (!j.global_batch || *j.global_batch < 1 || *j.global_batch > 10000000)
    return Refusal{RefusalReason::input_missing, "global_batch"};
  // One step's tokens: speed does not depend on how long training goes on.
  j.tokens = static_cast<double>(*sequence) * static_cast<double>(*j.global_batch);
  if (auto r = take_metric(row, c, static_cast<double>(*sequence))) return *r;
  // The time of a step depends on how much work it has; a throughput hardly does.
  if (c.readout.metric == Metric::step_seconds && !row.whole("global_batch") &&
      !row.whole("grad_accum"))
    return Refusal{RefusalReason::input_missing, "global_batch"};
  if (!source_stack(*c.model)) allow_length(c, *sequence);
  c.tuned = row.flag("tuned");
  if (c.tuned) c.assumptions.push_back({"plan", message(EvidenceMessage::best_legal_plan)});
  return c;
}

}  // namespace trigon
