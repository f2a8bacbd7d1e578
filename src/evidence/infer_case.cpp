// Rows of speed measurements of inference.

#include <algorithm>

#include "evidence/messages.hpp"
#include "evidence/resolve.hpp"

namespace trigon {

namespace {

// Prompts that sources call short, and answers whose length they leave out: the time of a token
// hardly depends on either while weights are far larger than the cache.
constexpr std::int64_t kShortPrompt = 32, kShortAnswer = 128;

struct Lengths {
  std::optional<std::int64_t> input, output, depth;
  double batch = 1;
  bool batch_stated = false;
  std::optional<double> requests;  // of the whole run
};

Refusal missing(const char* column) { return {RefusalReason::input_missing, column}; }

bool is_tail(std::string_view stat) { return stat.substr(0, 2) == "p9"; }

void assume_short_prompt(Case& c, Lengths& n) {
  if (n.input) return;
  n.input = kShortPrompt;
  c.assumptions.push_back({"input_len", message(EvidenceMessage::short_prompt, kShortPrompt)});
}
void assume_answer(Case& c, Lengths& n) {
  if (n.output) return;
  n.output = kShortAnswer;
  c.assumptions.push_back({"output_len", message(EvidenceMessage::answer_length, kShortAnswer)});
}

void ask(Case& c, std::int64_t input, std::int64_t output, std::optional<double> concurrency) {
  JobRequest& j = c.question.job;
  j.kind = concurrency ? JobKind::serve : JobKind::batch;
  j.concurrency = concurrency;
  const Stack* source = source_stack(*c.model);
  // Some encoders read inputs of one length only.
  if (!source || !source->fixed_length) j.input_tokens = std::max<std::int64_t>(input, 1);
  if (language_stack(*c.model)->generates) j.output_tokens = std::max<std::int64_t>(output, 1);
}

// A batch of requests that start together.
void fix_batch(Case& c, double requests) {
  const double per_replica = requests / c.question.plan.data.value_or(1);
  c.question.plan.micro_batch = static_cast<std::int32_t>(std::max(1.0, per_replica));
  c.question.job.kind = JobKind::batch;
  c.question.job.requests = requests;
  c.question.job.concurrency.reset();
}

// Decode speed: one step of the batch with the mean number of tokens in the cache.
std::optional<Refusal> decode_rate(Case& c, Lengths n, double tokens_per_step) {
  if (!n.depth) {
    assume_short_prompt(c, n);
    n.depth = n.input;
  }
  assume_answer(c, n);
  ask(c, *n.depth, *n.output, n.batch);
  fix_batch(c, n.batch);
  c.readout.kind = Readout::Kind::reciprocal;
  c.readout.metric = Metric::decode_step_seconds;
  c.readout.scale = tokens_per_step;
  return std::nullopt;
}

// A fixed batch from its prompts to its last token.
std::optional<Refusal> static_batch(Case& c, Lengths n, Readout::Kind kind, double scale) {
  if (n.depth && !n.input) n.input = n.depth;
  assume_short_prompt(c, n);
  if (!n.output) return missing("output_len");
  ask(c, *n.input, *n.output, n.batch);
  fix_batch(c, n.batch);
  c.readout.kind = kind;
  c.readout.scale = scale;
  c.readout.batch = n.batch;
  c.readout.input = static_cast<double>(*n.input);
  c.readout.output = static_cast<double>(*n.output);
  return std::nullopt;
}

// `first`: the first pass of a process, which also pays what is done once.
std::optional<Refusal> prefill_rate(Case& c, const Lengths& n, bool first) {
  if (!n.input) return missing("input_len");
  const std::int64_t depth = n.depth.value_or(0);
  ask(c, depth + *n.input, 1, n.batch);
  fix_batch(c, n.batch);
  if (depth > 0) {
    c.before = c.question;
    c.before->job.input_tokens = depth;
  }
  c.readout.kind = Readout::Kind::reciprocal;
  c.readout.metric = first ? Metric::ttft_seconds : Metric::prefill_seconds;
  c.readout.scale = n.batch * static_cast<double>(*n.input);
  return std::nullopt;
}

bool tuned(const Row& row) { return row.flag("tuned") || row.text("stat") == "max"; }

// How several requests share a server over time needs a simulation, and so do the tails of any
// distribution. What is left is a batch that starts and ends together, one request after another,
// and an offline run that was tuned to serve most.
bool under_load(const Row& row, const Model& model) {
  if (is_tail(row.text("stat")) || row.number("request_rate")) return true;
  const Stack* stack = language_stack(model);
  const std::string_view metric = row.text("metric"), span = row.text("span");
  if (!stack || !stack->generates || metric == "decode_tok_s_per_user" ||
      metric == "prefill_tok_s" || !span.empty())
    return false;
  const auto batch = row.number("batch_or_concurrency");
  return !(batch && *batch == 1) && (metric == "ttft_ms" || !tuned(row));
}

// A metric of the steady state.
std::optional<Refusal> steady(Case& c, Lengths n, Metric metric, double scale) {
  if (!n.batch_stated) {
    if (!n.input) return missing("input_len");
    if (!n.output) return missing("output_len");
    ask(c, *n.input, *n.output, std::nullopt);
    c.question.job.requests = n.requests;
    c.tuned = true;  // the engine runs as many at once as it can hold
  } else {
    assume_short_prompt(c, n);
    assume_answer(c, n);
    ask(c, *n.input, *n.output, n.batch);
  }
  c.readout.metric = metric;
  c.readout.scale = scale;
  return std::nullopt;
}

// An encoder answers a whole batch in one pass.
std::optional<Refusal> take_pass(const Row& row, Case& c, const Lengths& n) {
  const std::string_view metric = row.text("metric");
  if (!n.input) return missing("input_len");
  if (metric != "req_s" && metric != "e2e_ms")
    return Refusal{RefusalReason::metric_not_supported, std::string(metric)};
  ask(c, *n.input, 0, std::nullopt);
  if (n.batch_stated)
    fix_batch(c, n.batch);
  else
    c.tuned = true;  // the engine takes the batch that serves most
  if (metric == "req_s") {
    c.readout.metric = Metric::requests_per_second;
    return std::nullopt;
  }
  if (!n.batch_stated) return missing("batch_or_concurrency");
  c.measured *= 1e-3;
  c.readout.metric = Metric::e2e_seconds;
  return std::nullopt;
}

std::optional<Refusal> take_metric(const Row& row, Case& c, const Lengths& n) {
  if (!language_stack(*c.model)->generates) return take_pass(row, c, n);
  const std::string_view metric = row.text("metric"), span = row.text("span");
  const bool alone = n.batch_stated ? n.batch == 1 : false;
  const bool fixed = span == "static_batch" || span == "whole";

  if (metric == "decode_tok_s_per_user") {
    if (fixed && n.output)
      return static_batch(c, n, Readout::Kind::static_rate, static_cast<double>(*n.output));
    return decode_rate(c, n, 1);
  }
  if (metric == "prefill_tok_s") return prefill_rate(c, n, span == "first");
  if (metric == "output_tok_s_total") {
    if (span == "decode") return decode_rate(c, n, n.batch);
    if (fixed && n.output)
      return static_batch(c, n, Readout::Kind::static_rate,
                          n.batch * static_cast<double>(*n.output));
    return steady(c, n, Metric::output_tokens_per_second, 1);
  }
  if (metric == "req_s") {
    return steady(c, n, Metric::requests_per_second, 1);
  }
  if (metric == "ttft_ms") {
    c.measured *= 1e-3;
    if (!n.input) return missing("input_len");
    ask(c, *n.input, n.output.value_or(1), 1);
    c.readout.metric = n.output.value_or(1) > 1 ? Metric::ttft_seconds : Metric::prefill_seconds;
    return std::nullopt;
  }
  if (metric == "tpot_ms") {
    c.measured *= 1e-3;
    if (alone) {
      auto refused = decode_rate(c, n, 1);
      c.readout.kind = Readout::Kind::metric;
      return refused;
    }
    return steady(c, n, Metric::tpot_seconds, 1);
  }
  if (metric == "e2e_ms" && span == "encoder") {
    c.measured *= 1e-3;
    ask(c, 1, 1, std::nullopt);
    fix_batch(c, n.batch);
    c.readout.metric = Metric::prefill_seconds;
    return std::nullopt;
  }
  if (metric == "e2e_ms") {
    c.measured *= 1e-3;
    if (!n.input) return missing("input_len");
    if (fixed || alone) return static_batch(c, n, Readout::Kind::static_seconds, 1);
    return steady(c, n, Metric::e2e_seconds, 1);
  }
  return Refusal{RefusalReason::metric_not_supported, std::string(metric)};
}

}  // namespace

CaseOrRefusal read_infer_case(const Row& row, const RowNames& names) {
  Case c;
  // Whether the network is known comes first: it decides what is in scope.
  if (auto r = take_model(row, names, c)) return *r;
  if (under_load(row, *c.model))
    return Refusal{RefusalReason::needs_simulation, std::string(row.text("metric"))};
  if (auto r = take_identity(row, c)) return *r;
  if (row.flag("speculative")) return Refusal{RefusalReason::speculative_decoding, "speculative"};
  const std::string_view engine = row.text("engine");
  const bool split = engine.size() > 3 && engine.substr(engine.size() - 3) == " PD";
  if (row.flag("disaggregated") || split)
    return Refusal{RefusalReason::disaggregated, "disaggregated"};
  if (!row.text("offload").empty()) return Refusal{RefusalReason::offloading, "offload"};
  if (auto r = take_weights(row, names, c)) return *r;
  if (const auto kv = row.text("kv_format"); !kv.empty()) {
    c.question.plan.kv = format_of(kv);
    if (!c.question.plan.kv) return Refusal{RefusalReason::format_unknown, std::string(kv)};
  }
  if (auto r =
          take_engine(row.text("engine"), row.text("engine_version"), row.text("date"), names, c))
    return *r;

  PlanRequest& p = c.question.plan;
  if (const auto n = row.whole("ubatch"); n && *n > 0) p.chunk_tokens = n;
  if (const auto fa = row.text("fa"); !fa.empty()) p.flash_attention = fa == "1";
  // The checkpoints that TensorRT-LLM runs in these formats carry scales for an FP8 cache.
  if (c.question.engine.substr(0, 12) == "tensorrt-llm" && !p.kv && p.weights &&
      (*p.weights == Format::fp8_tensor || *p.weights == Format::nvfp4)) {
    p.kv = Format::fp8_tensor;
    c.assumptions.push_back({"kv_format", message(EvidenceMessage::fp8_cache)});
  }
  c.tuned = tuned(row);
  p.tensor = degree(row, "tp");
  p.pipeline = degree(row, "pp");
  p.expert = degree(row, "ep");
  if (row.flag("attention_dp")) p.attention_data = true;
  if (const auto n = row.whole("max_sequences"); n && *n > 0) p.max_sequences = n;
  p.data = degree(row, "dp");
  const std::int64_t model_ranks = std::int64_t{p.tensor.value_or(1)} * p.pipeline.value_or(1);
  std::int64_t cards = row.whole("n_gpus").value_or(0);
  if (cards == 0 && p.tensor) cards = model_ranks * p.data.value_or(1);
  if (cards == 0) return missing("n_gpus");
  if (!p.data && p.tensor && !c.tuned) {
    cards = model_ranks;  // a server uses the cards its degrees name, whatever else the node has
    p.data = 1;
  }
  if (whole_items(c)) {
    p.tensor = p.pipeline = 1;
    p.data = static_cast<std::int32_t>(std::clamp<std::int64_t>(cards, 1, 1000000));
  }
  if (cards == 1 && !p.tensor) p.tensor = p.pipeline = p.data = 1;
  if (auto r = take_hardware(row, names, cards, row.whole("gpus_per_node").value_or(0), c))
    return *r;
  // A row that names the host's processor under an engine for cards does not say what ran.
  if (names.runs_on_processors && !c.hardware.empty() &&
      c.hardware.front().accelerator->kind == DeviceKind::cpu &&
      !names.runs_on_processors(c.question.engine))
    return Refusal{RefusalReason::hardware_not_stated, "gpu"};
  if (const auto watts = row.number("power_cap_w"))
    for (Cluster& h : c.hardware) h.card.power_limit = Watts::base(*watts);
  if (const auto threads = row.number("threads"); threads && *threads >= 1)
    for (Cluster& h : c.hardware) h.card.threads = threads;

  if (whole_items(c)) {
    if (auto r = read_item_inference(row, c)) return *r;
    if (c.tuned) c.assumptions.push_back({"plan", message(EvidenceMessage::best_legal_plan)});
    return c;
  }
  Lengths n;
  n.input = row.whole("input_len");
  n.output = row.whole("output_len");
  n.depth = row.whole("depth");
  n.requests = row.number("requests");
  if (const Stack* source = source_stack(*c.model); source && source->fixed_length)
    n.input = source->fixed_length;
  if (const auto b = row.number("batch_or_concurrency"); b && *b >= 1) {
    n.batch = *b;
    n.batch_stated = true;
  }
  if ((n.input && *n.input < 0) || (n.output && *n.output < 0) || (n.depth && *n.depth < 0))
    return Refusal{RefusalReason::bad_value, "input_len"};
  if (auto r = take_metric(row, c, n)) return *r;
  if (!source_stack(*c.model))
    allow_length(
        c, c.question.job.input_tokens.value_or(0) + c.question.job.output_tokens.value_or(0));
  if (c.tuned) c.assumptions.push_back({"plan", message(EvidenceMessage::best_legal_plan)});
  return c;
}

}  // namespace trigon
