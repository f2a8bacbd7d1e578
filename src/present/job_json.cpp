#include "present/job_text.hpp"

namespace trigon {

const char* method_name(TuneMethod m) {
  return m == TuneMethod::full ? "full" : m == TuneMethod::lora ? "lora" : "qlora";
}

namespace {

std::optional<double> base(const std::optional<Seconds>& s) {
  if (!s) return std::nullopt;
  return s->in_base();
}

JsonNode limit_json(const std::optional<LatencyLimit>& limit) {
  if (!limit) return {};
  return JsonNode::object()
      .set("at_most_seconds", limit->at_most.in_base())
      .set("percentile", limit->percentile);
}

const char* recompute_name(Recompute r) {
  return r == Recompute::none ? "none" : r == Recompute::selective ? "selective" : "full";
}

JsonNode request_json(const PlanRequest& p) {
  JsonNode out = JsonNode::object();
  auto put = [&](const char* key, const auto& v) {
    if (v) out.set(key, JsonNode(*v));
  };
  put("tensor", p.tensor);
  put("pipeline", p.pipeline);
  put("virtual_stages", p.virtual_stages);
  put("data", p.data);
  put("context", p.context);
  put("expert", p.expert);
  put("zero", p.zero);
  put("micro_batch", p.micro_batch);
  if (p.recompute) out.set("recompute", recompute_name(*p.recompute));
  put("recompute_layers", p.recompute_layers);
  put("expert_tensor", p.expert_tensor);
  put("sequence_parallel", p.sequence_parallel);
  put("reshard", p.reshard);
  if (p.optimizer) out.set("optimizer", optimizer_name(*p.optimizer));
  put("offload_optimizer", p.offload_optimizer);
  put("offload_weights", p.offload_weights);
  put("offload_activations", p.offload_activations);
  if (p.recipe) out.set("recipe", recipe_name(*p.recipe));
  if (p.weights) out.set("weights", info(*p.weights).name);
  if (p.kv) out.set("kv", info(*p.kv).name);
  if (p.activations) out.set("activations", info(*p.activations).name);
  put("memory_fraction", p.memory_fraction);
  put("flash_attention", p.flash_attention);
  put("max_num_batched_tokens", p.chunk_tokens);
  put("max_num_seqs", p.max_sequences);
  put("kv_cache_tokens", p.pool_tokens);
  put("mla", p.latent_mode);
  put("attention_max_batch_bytes", p.attention_chunk_bytes);
  put("fused_moe", p.fused_experts);
  put("loss_chunks", p.loss_chunks);
  put("reference_model", p.reference);
  put("gpu_layers", p.gpu_layers);
  put("experts_on_host", p.experts_on_host);
  if (p.card_split) out.set("split_mode", card_split_name(*p.card_split));
  put("main_gpu", p.main_card);
  if (p.card_shares) {
    JsonNode shares = JsonNode::array();
    for (float share : *p.card_shares) shares.add(static_cast<double>(share));
    out.set("tensor_split", shares);
  }
  return out;
}

JsonNode objective_json(const Objective& o) {
  JsonNode vendors = JsonNode::array();
  for (const std::string& v : o.vendors) vendors.add(v);
  JsonNode out = JsonNode::object();
  out.set("payment", o.payment == Payment::rent  ? "rent"
                     : o.payment == Payment::buy ? "buy"
                                                 : "any");
  if (o.budget.total) out.set("budget_usd", o.budget.total->in_base());
  if (o.budget.per_second) out.set("budget_usd_per_hour", o.budget.per_second->in_base() * 3600);
  out.set("vendors", vendors).set("max_gpus", o.max_gpus);
  out.set("as_of", o.as_of.empty() ? JsonNode() : JsonNode(o.as_of));
  if (o.min_bits) out.set("min_bits", *o.min_bits);
  return out;
}

JsonNode arg_json(const MessageArg& a) {
  return std::visit(
      [](const auto& v) -> JsonNode {
        if constexpr (requires { v.in_base(); })
          return JsonNode(v.in_base());
        else
          return JsonNode(v);
      },
      a);
}

}  // namespace

namespace {

JsonNode item_json(const Item& item) {
  constexpr const char* units[] = {"sequence", "image", "volume", "sample", "utterance"};
  JsonNode size = JsonNode::array();
  for (std::int64_t side : item.size) size.add(side);
  JsonNode out = JsonNode::object();
  out.set("unit", units[static_cast<std::size_t>(item.unit)]).set("size", size);
  if (item.steps > 1) out.set("denoising_steps", item.steps);
  if (item.audio_seconds > 0) out.set("audio_seconds", item.audio_seconds);
  return out;
}

}  // namespace

JsonNode job_json(const Job& job) {
  JsonNode out = JsonNode::object();
  if (const auto& item = item_of(job)) out.set("item", item_json(*item));
  if (auto s = std::get_if<Serve>(&job)) {
    out.set("task", "serve");
    if (s->rate) out.set("rate_per_second", s->rate->in_base());
    if (s->concurrency) out.set("concurrency", *s->concurrency);
    out.set("input_tokens", s->input_tokens).set("output_tokens", s->output_tokens);
    out.set("limits", JsonNode::object()
                          .set("ttft", limit_json(s->limits.ttft))
                          .set("tpot", limit_json(s->limits.tpot))
                          .set("e2e", limit_json(s->limits.e2e)));
  } else if (auto b = std::get_if<Batch>(&job)) {
    out.set("task", "batch").set("requests", JsonNode(b->requests));
    out.set("input_tokens", b->input_tokens).set("output_tokens", b->output_tokens);
    out.set("deadline_seconds", JsonNode(base(b->deadline)));
  } else if (auto t = std::get_if<Train>(&job)) {
    out.set("task", "train").set("tokens", t->tokens).set("sequence_tokens", t->sequence);
    out.set("global_batch_sequences", t->global_batch);
    out.set("deadline_seconds", JsonNode(base(t->deadline)));
  } else if (auto f = std::get_if<FineTune>(&job)) {
    out.set("task", "finetune").set("method", method_name(f->method)).set("tokens", f->tokens);
    out.set("sequence_tokens", f->sequence).set("global_batch_sequences", f->global_batch);
    if (f->method != TuneMethod::full)
      out.set("rank", f->rank)
          .set("adapter_targets", write_targets(f->targets))
          .set("dora", f->dora);
    out.set("deadline_seconds", JsonNode(base(f->deadline)));
  }
  return out;
}

JsonNode plan_json(const Plan& p) {
  JsonNode out = JsonNode::object();
  out.set("text", write_plan(p))
      .set("tensor", p.tensor)
      .set("pipeline", p.pipeline)
      .set("virtual_stages", p.virtual_stages)
      .set("data", p.data)
      .set("context", p.context)
      .set("expert", p.expert)
      .set("expert_tensor", p.expert_tensor)
      .set("zero", p.zero)
      .set("offload_optimizer", p.offload_optimizer)
      .set("offload_weights", p.offload_weights)
      .set("offload_activations", p.offload_activations)
      .set("micro_batch", p.micro_batch)
      .set("accumulation", p.accumulation)
      .set("recompute", recompute_name(p.recompute))
      .set("sequence_parallel", p.sequence_parallel)
      .set("recipe", recipe_name(p.recipe))
      .set("optimizer", optimizer_name(p.optimizer))
      .set("weights", info(p.weights).name)
      .set("kv", info(p.kv).name)
      .set("activations", info(p.activations).name);
  if (p.gpu_layers >= 0) out.set("gpu_layers", p.gpu_layers);
  if (p.experts_on_host > 0) out.set("experts_on_host", p.experts_on_host);
  if (p.card_split != CardSplit::layer) out.set("split_mode", card_split_name(p.card_split));
  if (p.main_card > 0) out.set("main_gpu", p.main_card);
  if (p.has_shares()) {
    JsonNode shares = JsonNode::array();
    for (std::size_t i = 0; i < kMostShares && i < static_cast<std::size_t>(p.pipeline); ++i)
      shares.add(static_cast<double>(p.card_shares[i]));
    out.set("tensor_split", shares);
  }
  return out;
}

// Messages stay English in JSON, beside their id and arguments in base units.
JsonNode message_json(const Message& m) {
  JsonNode args = JsonNode::array();
  for (const MessageArg& a : m.args) args.add(arg_json(a));
  return JsonNode::object()
      .set("id", message_name(m.id))
      .set("args", args)
      .set("text", render(m, Language::english));
}

JsonNode report_json(const PlanReport& r) {
  JsonNode hardware = JsonNode::object();
  hardware.set("text", hardware_in_words(r.cluster));
  hardware.set("accelerator",
               r.cluster.accelerator ? JsonNode(r.cluster.accelerator->id) : JsonNode());
  hardware.set("nodes", r.cluster.nodes).set("per_node", r.cluster.per_node);
  hardware.set("intra_link",
               r.cluster.intra.id.empty() ? JsonNode() : JsonNode(r.cluster.intra.id));
  hardware.set("inter_link", r.cluster.inter ? JsonNode(r.cluster.inter->id) : JsonNode());

  JsonNode metrics = JsonNode::object();
  for (std::size_t i = 0; i < kMetrics; ++i)
    if (r.metrics[i]) metrics.set(metric_info(static_cast<Metric>(i)).json, json_of(*r.metrics[i]));
  auto terms = [](const RankMemory& m) {
    JsonNode out = JsonNode::object();
    for (std::size_t i = 0; i < kMemoryTerms; ++i)
      if (m.bytes[i] > 0) out.set(memory_term_json(static_cast<MemoryTerm>(i)), m.bytes[i]);
    return out;
  };
  JsonNode stages = JsonNode::array();
  for (const RankMemory& m : r.stages) stages.add(terms(m));
  JsonNode violated = JsonNode::array(), warnings = JsonNode::array();
  for (const Message& m : r.violated) violated.add(message_json(m));
  for (const Message& m : r.warnings) warnings.add(message_json(m));
  JsonNode out = JsonNode::object();
  out.set("hardware", hardware)
      .set("engine", r.engine)
      .set("plan", plan_json(r.plan))
      .set("fits", r.fits)
      .set("meets_limits", r.meets_limits)
      .set("metrics", metrics)
      .set("memory_per_rank", terms(r.memory))
      .set("memory_per_stage", stages)
      .set("fullest_stage", r.fullest_stage)
      .set("violated", violated)
      .set("warnings", warnings);
  if (r.memory.host.total() > 0) out.set("host_memory_bytes", r.memory.host.total());
  if (r.memory.host.repacked > 0) out.set("host_memory_repacked_bytes", r.memory.host.repacked);
  return out;
}

JsonNode envelope(const Asked& asked, const Job* job, const std::vector<Assumption>& assumptions,
                  JsonNode results, const std::vector<Message>& warnings) {
  JsonNode inputs = JsonNode::object();
  if (!asked.model.empty()) inputs.set("model", asked.model);
  if (!asked.hardware.empty()) {
    JsonNode hardware = JsonNode::array();
    for (const std::string& h : asked.hardware) hardware.add(h);
    inputs.set("hardware", hardware);
  }
  if (job) {
    inputs.set("job", job_json(*job));
    inputs.set("engine", asked.engine.empty() ? JsonNode() : JsonNode(asked.engine));
    inputs.set("plan", request_json(asked.plan));
    if (asked.command == "recommend" || asked.command == "compare")
      inputs.set("objective", objective_json(asked.objective));
    JsonNode list = JsonNode::array();
    for (const Assumption& a : assumptions) {
      JsonNode entry = JsonNode::object();
      entry.set("input", a.input).set("id", message_name(a.what.id));
      entry.set("text", render(a.what, Language::english));
      list.add(entry);
    }
    inputs.set("assumptions", list);
  }
  JsonNode given = JsonNode::object();
  for (const Asked::Given& g : asked.given)
    given.set(g.name, JsonNode::object().set("value", g.text).set("from", g.origin));
  inputs.set("given", given);
  JsonNode notes = JsonNode::array();
  for (const Message& m : asked.warnings) notes.add(message_json(m));
  for (const Message& m : warnings) notes.add(message_json(m));
  return JsonNode::object()
      .set("schema_version", 1)
      .set("command", asked.command)
      .set("inputs", inputs)
      .set("results", std::move(results))
      .set("warnings", notes)
      .set("data_version", asked.data_version);
}

}  // namespace trigon
