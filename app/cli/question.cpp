#include "question.hpp"

#include <charconv>

#include "base/units.hpp"
#include "model/gguf_file_type.hpp"
#include "values.hpp"

namespace trigon {
namespace {

// Takes settings one by one; the first error stays.
struct Reader {
  const Settings& settings;
  std::optional<Error> error{};

  template <class T, class Parse>
  void take(std::string_view name, Parse parse, std::optional<T>& into) {
    const Setting* s = settings.find(name);
    if (!s || error) return;
    auto v = parse(s->text, s->origin);
    if (v)
      into = static_cast<T>(*v);
    else
      error = v.error();
  }
  void reject_both(std::string_view a, std::string_view b) {
    const Setting *x = settings.find(a), *y = settings.find(b);
    if (x && y && x->text != "false" && y->text != "false" && !error)
      error = Error{ErrorCode::bad_argument,
                    message(AppMessage::not_together, x->origin, y->origin), "", std::nullopt};
  }
};

template <class E>
std::optional<E> choose(const Settings& s, std::string_view name,
                        std::initializer_list<std::pair<std::string_view, E>> choices) {
  const Setting* set = s.find(name);
  if (!set) return std::nullopt;
  for (const auto& [text, value] : choices)
    if (set->text == text) return value;
  return std::nullopt;
}

std::optional<bool> switched(const Settings& s, std::string_view name) {
  const Setting* set = s.find(name);
  if (!set) return std::nullopt;
  return set->text == "on";
}

std::optional<Format> format_setting(const Settings& s, std::string_view name) {
  const Setting* set = s.find(name);
  if (!set) return std::nullopt;
  const auto format = format_by_name(set->text);
  return format ? format : gguf_base_format(set->text);
}

void read_job(Reader& r, Asking& a) {
  JobRequest& job = a.job;
  const Settings& s = r.settings;
  if (auto kind = choose<JobKind>(s, "task",
                                  {{"serve", JobKind::serve},
                                   {"batch", JobKind::batch},
                                   {"train", JobKind::train},
                                   {"finetune", JobKind::finetune}}))
    job.kind = *kind;
  job.method = choose<TuneMethod>(
      s, "method",
      {{"full", TuneMethod::full}, {"lora", TuneMethod::lora}, {"qlora", TuneMethod::qlora}});
  r.take("context", parse_length, job.context);
  r.take("concurrency", parse_count, job.concurrency);
  r.take("rate", parse_rate, job.rate);
  r.take("input-tokens", parse_length, job.input_tokens);
  r.take("output-tokens", parse_length, job.output_tokens);
  r.take("requests", parse_count, job.requests);
  r.take("tokens", parse_count, job.tokens);
  r.take("samples", parse_count, job.samples);
  r.take("epochs", parse_number, job.epochs);
  r.take("sequence", parse_length, job.sequence);
  r.take("global-batch", parse_whole, job.global_batch);
  r.take("rank", parse_whole, job.rank);
  r.take("adapt", adapter_targets, job.targets);
  if (s.on("dora")) job.dora = true;
  r.take("deadline", parse_duration, job.deadline);
  std::optional<ServeLimits> slo;
  r.take("slo", parse_slo, slo);
  if (slo) job.limits = *slo;
  r.take("ttft", parse_latency, job.limits.ttft);
  r.take("tpot", parse_latency, job.limits.tpot);
  r.take("e2e", parse_latency, job.limits.e2e);

  std::optional<double> users;
  std::optional<Seconds> think;
  r.take("users", parse_count, users);
  r.take("think-time", parse_duration, think);
  r.reject_both("rate", "concurrency");
  r.reject_both("users", "concurrency");
  r.reject_both("users", "rate");
  if (users && think && think->in_base() > 0) {
    job.rate = *users / *think;
    a.warnings.push_back(message(AppMessage::users_as_rate, *users, *think, job.rate->in_base()));
  } else if (users) {
    job.concurrency = *users;
  }
}

std::optional<Error> read_offload(const Setting& s, PlanRequest& plan) {
  std::string_view list = s.text;
  while (!list.empty()) {
    const std::size_t end = list.find(',');
    const std::string_view part = list.substr(0, end);
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
    if (part == "optimizer")
      plan.offload_optimizer = true;
    else if (part == "weights")
      plan.offload_weights = true;
    else if (part == "activations")
      plan.offload_activations = true;
    else
      return Error{ErrorCode::bad_argument, message(AppMessage::no_such_part, part), s.origin,
                   message(AppMessage::parts_are)};
  }
  return std::nullopt;
}

std::optional<Error> read_media_limits(const Setting& s, PlanRequest& plan) {
  std::string_view list = s.text;
  while (!list.empty()) {
    const std::size_t end = list.find(',');
    const std::string_view part = list.substr(0, end);
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
    const std::size_t equals = part.find('=');
    const std::string_view kind = part.substr(0, equals);
    std::int64_t n = -1;
    if (equals != std::string_view::npos) {
      const char *begin = part.data() + equals + 1, *stop = part.data() + part.size();
      if (std::from_chars(begin, stop, n).ptr != stop || begin == stop || n > 1000000) n = -1;
    }
    if (n >= 0 && kind == "image")
      plan.media_images = n;
    else if (n >= 0 && kind == "video")
      plan.media_films = n;
    else
      return Error{ErrorCode::bad_argument, message(AppMessage::bad_media_limit, part), s.origin,
                   message(AppMessage::media_limits_are)};
  }
  return std::nullopt;
}

void read_plan(Reader& r, Asking& a) {
  PlanRequest& plan = a.plan;
  const Settings& s = r.settings;
  r.take("tp", parse_whole, plan.tensor);
  r.take("pp", parse_whole, plan.pipeline);
  r.take("dp", parse_whole, plan.data);
  r.take("ep", parse_whole, plan.expert);
  r.take("cp", parse_whole, plan.context);
  r.take("zero", parse_whole, plan.zero);
  r.take("micro-batch", parse_whole, plan.micro_batch);
  r.take("memory-fraction", parse_fraction, plan.memory_fraction);
  r.take("gpu-layers", parse_whole, plan.gpu_layers);
  r.take("experts-on-host", parse_whole, plan.experts_on_host);
  if (const Setting* sm = s.find("split-mode")) plan.card_split = card_split_of(sm->text);
  r.take("main-gpu", parse_whole, plan.main_card);
  r.take("tensor-split", parse_shares, plan.card_shares);
  plan.flash_attention = switched(s, "flash-attention");
  r.take("max-num-batched-tokens", parse_whole, plan.chunk_tokens);
  r.take("max-num-seqs", parse_whole, plan.max_sequences);
  r.take("kv-cache-tokens", parse_whole, plan.pool_tokens);
  r.take("mla", parse_whole, plan.latent_mode);
  std::optional<std::int64_t> mebibytes_at_once;
  r.take("attention-max-batch", parse_whole, mebibytes_at_once);
  if (mebibytes_at_once)
    plan.attention_chunk_bytes = mebibytes(static_cast<double>(*mebibytes_at_once)).in_base();
  plan.fused_experts = switched(s, "fused-moe");
  if (s.on("attention-dp")) plan.attention_data = true;
  if (const Setting* o = s.find("recipe")) plan.recipe = recipe_of(o->text);
  if (s.on("reference-model")) plan.reference = true;
  r.take("loss-chunks", parse_whole, plan.loss_chunks);
  plan.recompute = choose<Recompute>(
      s, "recompute",
      {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}});
  r.take("recompute-layers", parse_whole, plan.recompute_layers);
  r.take("etp", parse_whole, plan.expert_tensor);
  r.take("vpp", parse_whole, plan.virtual_stages);
  r.take("zero-groups", parse_whole, plan.optimizer_groups);
  r.take("last-stage-layers", parse_whole, plan.last_stage_layers);
  r.take("expert-capacity", parse_number, plan.expert_capacity);
  if (const Setting* o = s.find("schedule")) {
    plan.any_schedule = o->text == "any";
    plan.schedule = schedule_of(o->text);
  }
  if (const Setting* o = s.find("cp-exchange"))
    plan.context_exchange = context_exchange_of(o->text);
  if (const Setting* o = s.find("optimizer")) plan.optimizer = optimizer_of(o->text);
  if (s.on("no-reshard")) plan.reshard = false;
  if (const Setting* o = s.find("offload"); o && !r.error) r.error = read_offload(*o, plan);
  if (const Setting* o = s.find("limit-mm-per-prompt"); o && !r.error)
    r.error = read_media_limits(*o, plan);
  if (const Setting* sp = s.find("sequence-parallel")) plan.sequence_parallel = sp->text != "false";
  plan.weights = format_setting(s, "quant");
  plan.kv = format_setting(s, "kv");
  if (const Setting* engine = s.find("engine")) a.engine = engine->text;
}

void read_objective(Reader& r, Asking& a) {
  Objective& o = a.objective;
  const Settings& s = r.settings;
  r.reject_both("buy", "rent");
  if (s.on("buy")) o.payment = Payment::buy;
  if (s.on("rent")) o.payment = Payment::rent;
  std::optional<Money> budget;
  r.take("budget", parse_money, budget);
  if (budget) {
    if (auto total = std::get_if<Dollars>(&*budget))
      o.budget.total = *total;
    else
      o.budget.per_second = std::get<DollarsPerSecond>(*budget);
  }
  if (const Setting* v = s.find("vendor"))
    for (std::string_view name : split_words(v->text, ',')) o.vendors.emplace_back(name);
  std::optional<int> most;
  r.take("max-gpus", parse_whole, most);
  if (most) o.max_gpus = *most;
  r.take("min-bits", parse_number, o.min_bits);
  const Setting* quant = s.find("quant");
  if (quant && quant->text == "any" && !o.min_bits) o.min_bits = 0;
  std::optional<int> threads;
  r.take("threads", parse_whole, threads);
  if (threads) o.threads = *threads;
  if (const Setting* date = s.find("as-of")) o.as_of = date->text;
  if (const Setting* card = s.find("why-not")) o.why_not = card->text;
}

}  // namespace

Result<Asking> read_question(const Settings& s) {
  Asking a;
  Reader r{s};
  read_job(r, a);
  read_plan(r, a);
  read_objective(r, a);
  r.take("host-memory", parse_bytes, a.host_memory);
  r.take("host-bandwidth", parse_bandwidth, a.host_bandwidth);
  r.take("loader-rate", parse_number, a.loader_rate);
  r.take("disk", parse_bytes, a.disk);
  if (r.error) return tl::unexpected(*r.error);
  return a;
}

}  // namespace trigon
