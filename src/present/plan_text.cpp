// The best plan on one cluster, what it was chosen from, and what each card brings.

#include <algorithm>
#include <cmath>

#include "present/numbers.hpp"
#include "present/page.hpp"
#include "present/reports.hpp"
#include "search/training_space.hpp"

namespace trigon {
namespace {

constexpr std::size_t kFrontShown = 12;

std::string family_in_words(const Family& f, Language l) {
  auto one_of = [&](std::initializer_list<PresentMessage> names) {
    const auto i = static_cast<std::size_t>(f.value);
    return std::string(i < names.size() ? label(names.begin()[i], l) : std::string_view("?"));
  };
  using P = PresentMessage;
  switch (f.kind) {
    case FamilyKind::tensor:
      return say(P::family_tensor, l, {std::to_string(f.value)});
    case FamilyKind::pipeline:
      return one_of({P::family_no_pipeline, P::family_pipeline, P::family_interleaved,
                     P::family_gpipe, P::family_zero_bubble});
    case FamilyKind::context:
      return one_of({P::family_whole_sequences, P::family_ring, P::family_all_to_all});
    case FamilyKind::expert:
      return one_of({P::family_no_experts, P::family_experts});
    case FamilyKind::data:
      return one_of({P::family_one_replica, P::family_replicas});
    case FamilyKind::zero:
      return say(P::family_zero, l, {std::to_string(f.value)});
    case FamilyKind::groups:
      return one_of({P::family_one_group, P::family_groups});
    case FamilyKind::recompute:
      return one_of({P::family_no_recompute, P::family_selective, P::family_recompute});
    case FamilyKind::offload: {
      if (f.value == 0) return std::string(label(P::family_nothing_offloaded, l));
      std::string parts;
      for (const auto& [bit, name] : {std::pair{offload_optimizer, P::part_optimizer},
                                      std::pair{offload_weights, P::part_weights},
                                      std::pair{offload_activations, P::part_activations}})
        if (f.value & bit) parts += (parts.empty() ? "" : ", ") + std::string(label(name, l));
      return say(P::family_offload, l, {parts});
    }
  }
  return "?";
}

// "tp8 pp8 dp64 mb1": with the micro-batch of training, which decides as much as the degrees.
std::string short_plan(const Plan& p, const Job& job) {
  return write_plan(p) + (is_training(job) ? " mb" + std::to_string(p.micro_batch) : "");
}

double share_of(const PlanRow& r) { return 100 * r.memory_bytes / r.usable_bytes; }

bool by_rate(const Job& job) {
  auto serve = std::get_if<Serve>(&job);
  return serve && serve->rate;
}

std::string in_times(const Job& job, double ratio, Language l) {
  return say(by_rate(job) ? PresentMessage::times_as_busy : PresentMessage::times_as_long, l,
             {trimmed_number(ratio)});
}

// Why the best of a family is not the answer.
std::string why_lost(const PlanFamilyRow& f, const Job& job, Language l) {
  if (!f.best) return f.refused ? render(*f.refused, l) : "-";
  if (!f.best->good()) return render(f.best->violated.front(), l);
  std::string out;
  if (f.ratio >= 1.01)
    out = in_times(job, f.ratio, l);
  else if (f.ratio > 1 + 2e-6)
    out = label(PresentMessage::hardly_worse, l);
  if (f.best->tight)
    out += (out.empty() ? "" : ", ") + std::string(label(PresentMessage::little_room, l));
  return out.empty() ? std::string(label(PresentMessage::as_good, l)) : out;
}

std::string_view time_header(const Job& job, Language l) {
  return label(is_training(job) ? PresentMessage::col_step : PresentMessage::col_request, l);
}

PresentMessage method_in_words(TuneMethod m) {
  return m == TuneMethod::full   ? PresentMessage::method_full
         : m == TuneMethod::lora ? PresentMessage::method_lora
                                 : PresentMessage::method_qlora;
}

void put_methods(Page& page, const PlanAnswer& a) {
  const Language l = page.language();
  if (a.methods.size() < 2) return;
  page.heading(label(PresentMessage::heading_methods, l));
  NumberColumn time("s"), memory("B"), host("B");
  bool beside = false;
  for (const MethodRow& m : a.methods)
    if (m.best) {
      if (std::isfinite(m.best->seconds)) time.see(m.best->seconds);
      memory.see(m.best->memory_bytes);
      if (m.best->host_bytes > 0) host.see(m.best->host_bytes), beside = true;
    }
  std::vector<Column> columns{{std::string(label(PresentMessage::col_method, l)), false, 0, 6},
                              {std::string(label(PresentMessage::col_verdict, l)), false, 0, 6},
                              {std::string(label(PresentMessage::col_its_best, l)), false, 1, 16},
                              {time.header(time_header(a.job, l)), true, 2},
                              {memory.header(label(PresentMessage::col_memory, l)), true, 3}};
  if (beside) columns.push_back({host.header(label(PresentMessage::col_host_memory, l)), true, 3});
  Table t(std::move(columns));
  for (const MethodRow& m : a.methods) {
    const bool good = m.best && m.best->good();
    const PresentMessage verdict = !good           ? PresentMessage::method_not
                                   : m.best->tight ? PresentMessage::method_tight
                                                   : PresentMessage::method_fits;
    std::vector<Cell> cells{std::string(label(method_in_words(m.method), l)),
                            std::string(label(verdict, l)),
                            m.best ? short_plan(m.best->plan, a.job) : std::string("-"),
                            m.best ? time.cell(m.best->seconds) : std::string("-"),
                            m.best ? memory.cell(m.best->memory_bytes) : std::string("-")};
    if (beside)
      cells.push_back(m.best && m.best->host_bytes > 0 ? host.cell(m.best->host_bytes)
                                                       : std::string("-"));
    t.row(std::move(cells));
  }
  page.table(t);
  for (const MethodRow& m : a.methods) {
    if (m.best && m.best->good()) continue;
    const std::string why = m.best      ? render(m.best->violated.front(), l)
                            : m.refused ? render(*m.refused, l)
                                        : "-";
    page.paragraph(std::string(label(method_in_words(m.method), l)) + ": " + why, Tone::faint, 2,
                   2);
  }
}

void put_families(Page& page, const PlanAnswer& a) {
  const Language l = page.language();
  if (a.families.empty()) return;
  page.heading(label(PresentMessage::heading_families, l));
  NumberColumn time("s"), memory("B");
  for (const PlanFamilyRow& f : a.families)
    if (f.best) {
      if (std::isfinite(f.best->seconds)) time.see(f.best->seconds);
      memory.see(f.best->memory_bytes);
    }
  Table t({{std::string(label(PresentMessage::col_kind_of_plan, l)), false, 0, 12},
           {std::string(label(PresentMessage::col_its_best, l)), false, 1, 16},
           {time.header(time_header(a.job, l)), true, 2},
           {std::string(label(PresentMessage::col_times, l)), true, 0},
           {memory.header(label(PresentMessage::col_memory, l)), true, 3}});
  for (const PlanFamilyRow& f : a.families)
    t.row({family_in_words(f.family, l),
           f.best ? short_plan(f.best->plan, a.job) : std::string("-"),
           f.best ? time.cell(f.best->seconds) : std::string("-"),
           f.ratio > 0 ? significant(f.ratio) : std::string("-"),
           f.best ? memory.cell(f.best->memory_bytes) : std::string("-")});
  page.table(t);
  for (const PlanFamilyRow& f : a.families)
    if (!f.best || (a.best && (!f.best->good() || f.best->tight)))
      page.paragraph(family_in_words(f.family, l) + ": " + why_lost(f, a.job, l), Tone::faint, 2,
                     2);
}

void put_front(Page& page, const PlanAnswer& a) {
  const Language l = page.language();
  if (a.front.size() < 2) return;
  page.heading(label(PresentMessage::heading_front, l));
  std::vector<const PlanRow*> shown;
  // Evenly over the front, both ends among them.
  const std::size_t n = std::min(kFrontShown, a.front.size());
  for (std::size_t i = 0; i < n; ++i) shown.push_back(&a.front[i * (a.front.size() - 1) / (n - 1)]);
  const bool hourly = std::holds_alternative<Serve>(a.job);
  NumberColumn time("s"), cost(hourly ? "USD/h" : "USD");
  for (const PlanRow* r : shown) {
    time.see(r->seconds);
    if (r->usd) cost.see(*r->usd);
  }
  Table t({{std::string(label(PresentMessage::col_count, l)), true, 0},
           {std::string(label(PresentMessage::col_plan, l)), false, 0, 10},
           {time.header(time_header(a.job, l)), true, 0},
           {std::string(label(PresentMessage::col_memory_share, l)), true, 0},
           {cost.header(label(PresentMessage::col_cost, l)), true, 1}});
  for (const PlanRow* r : shown)
    t.row({whole(r->cards), short_plan(r->plan, a.job), time.cell(r->seconds),
           significant(share_of(*r)), r->usd ? cost.cell(*r->usd) : std::string("-")});
  page.table(t);
  if (a.front.size() > n)
    page.paragraph(
        say(PresentMessage::more_rows, l, {whole(static_cast<std::int64_t>(a.front.size() - n))}),
        Tone::faint);
}

void put_scaling(Page& page, const PlanAnswer& a) {
  const Language l = page.language();
  if (a.scaling.size() < 2) return;
  page.heading(label(PresentMessage::heading_scaling, l));
  const bool hourly = std::holds_alternative<Serve>(a.job);
  NumberColumn time("s"), cost(hourly ? "USD/h" : "USD");
  const ScalingRow* first = nullptr;
  for (const ScalingRow& r : a.scaling) {
    if (!r.best) continue;
    if (!first && r.speedup > 0) first = &r;
    if (!r.best->good()) continue;
    time.see(r.best->seconds);
    if (r.best->usd) cost.see(*r.best->usd);
  }
  Table t({{std::string(label(PresentMessage::col_count, l)), true, 0},
           {std::string(label(PresentMessage::col_plan, l)), false, 1, 16},
           {time.header(time_header(a.job, l)), true, 2},
           {std::string(label(PresentMessage::col_speedup, l)), true, 0},
           {std::string(label(PresentMessage::col_efficiency, l)), true, 0},
           {std::string(label(PresentMessage::col_added, l)), true, 0},
           {cost.header(label(PresentMessage::col_cost, l)), true, 3}});
  auto percent = [](double share) {
    return share > 0 ? significant(100 * share) : std::string("-");
  };
  for (const ScalingRow& r : a.scaling) {
    const bool good = r.best && r.best->good();
    t.row({whole(r.cards), good ? short_plan(r.best->plan, a.job) : std::string("-"),
           good ? time.cell(r.best->seconds) : std::string("-"),
           r.speedup > 0 ? significant(r.speedup) : std::string("-"), percent(r.efficiency),
           r.added != 0 ? significant(100 * r.added) : std::string("-"),
           good && r.best->usd ? cost.cell(*r.best->usd) : std::string("-")});
  }
  page.table(t);
  if (first)
    page.paragraph(say(PresentMessage::scaling_basis, l, {whole(first->cards)}), Tone::faint);
  for (const ScalingRow& r : a.scaling) {
    if (r.best && r.best->good()) continue;
    const std::string why = r.best      ? render(r.best->violated.front(), l)
                            : r.refused ? render(*r.refused, l)
                                        : "-";
    page.paragraph(whole(r.cards) + ": " + why, Tone::faint, 2, 2);
  }
}

std::string headline(const PlanReport& r, const Job& job, Language l) {
  std::string out;
  const Metric time = is_training(job)                     ? Metric::step_seconds
                      : std::holds_alternative<Batch>(job) ? Metric::job_seconds
                                                           : Metric::capacity_requests_per_second;
  for (Metric m : {time, Metric::time_to_train_seconds}) {
    const std::string text = metric_in_words(r, m, l);
    if (!text.empty()) out += (out.empty() ? "" : ", ") + text;
  }
  return out.empty() ? metric_in_words(r, Metric::memory_bytes, l) : out;
}

std::string report_plan(const PlanReport& r, const Job& job) {
  return plan_in_words(r) +
         (is_training(job) ? " mb" + std::to_string(r.plan.micro_batch) : std::string());
}

}  // namespace

std::string plan_text(const PlanAnswer& a, const Asked& asked, const TextStyle& style) {
  const Language l = style.language;
  Page page(style);
  const PlanReport* r = a.best ? &*a.best : a.nearest ? &*a.nearest : nullptr;
  if (a.partial && r) page.paragraph(label(PresentMessage::verdict_partial, l), Tone::warning);
  if (!r) {
    page.paragraph(label(PresentMessage::verdict_partial_none, l), Tone::bad);
    return page.finish();
  }
  const std::string job = job_in_words(a.job, asked.model, l);
  page.paragraph(a.best ? say(PresentMessage::verdict_plan, l,
                              {job, hardware_in_words(r->cluster), report_plan(*r, a.job),
                               headline(*r, a.job, l), whole(a.plans)})
                        : say(PresentMessage::verdict_no_plan, l,
                              {job, hardware_in_words(r->cluster), report_plan(*r, a.job),
                               headline(*r, a.job, l)}),
                 a.best ? Tone::good : Tone::bad);
  if (style.one_line) return page.finish();
  page.blank();
  put_metrics(page, *r, deciding_metrics(a.job), a.job);
  for (const Message& m : r->violated) page.paragraph("- " + render(m, l), Tone::bad, 2, 2);
  if (a.runner_up && a.best) {
    // The one it lost to is the first row of the front or the best itself.
    const PlanFamilyRow* of = nullptr;
    for (const PlanFamilyRow& f : a.families)
      if (f.best && f.ratio > 0 && (!of || f.ratio < of->ratio)) of = &f;
    page.blank();
    page.paragraph(say(PresentMessage::plan_runner_up, l,
                       {short_plan(a.runner_up->plan, a.job), in_words(a.runner_up->seconds, "s"),
                        of ? why_lost(*of, a.job, l) : std::string("-")}));
  }
  put_methods(page, a);
  put_families(page, a);
  put_front(page, a);
  put_scaling(page, a);
  put_messages(page, PresentMessage::heading_relax, a.relax);
  put_assumptions(page, a.assumptions);
  std::vector<Message> warnings = r->warnings;
  put_warnings(page, warnings);
  page.blank();
  page.paragraph(say(PresentMessage::plan_counts, l,
                     {whole(a.decided), whole(a.timed), whole(a.weighed), whole(a.whole)}),
                 Tone::faint);
  if (style.explain && a.derivation) put_derivation(page, *a.derivation);
  return page.finish();
}

namespace {

const char* family_kind_name(FamilyKind k) {
  switch (k) {
    case FamilyKind::tensor:
      return "tensor";
    case FamilyKind::pipeline:
      return "pipeline";
    case FamilyKind::context:
      return "context";
    case FamilyKind::expert:
      return "expert";
    case FamilyKind::data:
      return "data";
    case FamilyKind::zero:
      return "zero";
    case FamilyKind::groups:
      return "zero_groups";
    case FamilyKind::recompute:
      return "recompute";
    case FamilyKind::offload:
      return "offload";
  }
  return "?";
}

JsonNode row_json(const PlanRow& r, const Job& job) {
  JsonNode violated = JsonNode::array();
  for (const Message& m : r.violated) violated.add(message_json(m));
  JsonNode out = JsonNode::object();
  out.set("cards", r.cards)
      .set("plan", plan_json(r.plan))
      .set(is_training(job) ? "step_seconds" : "request_seconds", r.seconds)
      .set("memory_bytes", r.memory_bytes)
      .set("usable_bytes", r.usable_bytes)
      .set(std::holds_alternative<Serve>(job) ? "usd_per_hour" : "usd_total", r.usd)
      .set("tight", r.tight)
      .set("violated", violated);
  if (r.host_bytes > 0) out.set("host_memory_bytes", r.host_bytes);
  return out;
}

}  // namespace

JsonNode plan_answer_json(const PlanAnswer& a, const Asked& asked) {
  JsonNode families = JsonNode::array(), front = JsonNode::array(), scaling = JsonNode::array(),
           relax = JsonNode::array(), methods = JsonNode::array();
  for (const PlanFamilyRow& f : a.families)
    families.add(JsonNode::object()
                     .set("kind", family_kind_name(f.family.kind))
                     .set("value", f.family.value)
                     .set("name", family_in_words(f.family, Language::english))
                     .set("best", f.best ? row_json(*f.best, a.job) : JsonNode())
                     .set("ratio", f.ratio > 0 ? JsonNode(f.ratio) : JsonNode())
                     .set("refused", f.refused ? message_json(*f.refused) : JsonNode()));
  for (const PlanRow& r : a.front) front.add(row_json(r, a.job));
  for (const ScalingRow& r : a.scaling) {
    auto known = [](double v) { return v != 0 ? JsonNode(v) : JsonNode(); };
    scaling.add(JsonNode::object()
                    .set("cards", r.cards)
                    .set("best", r.best ? row_json(*r.best, a.job) : JsonNode())
                    .set("refused", r.refused ? message_json(*r.refused) : JsonNode())
                    .set("speedup", known(r.speedup))
                    .set("efficiency", known(r.efficiency))
                    .set("each_added_card", known(r.added)));
  }
  for (const Message& m : a.relax) relax.add(message_json(m));
  for (const MethodRow& m : a.methods)
    methods.add(JsonNode::object()
                    .set("method", method_name(m.method))
                    .set("best", m.best ? row_json(*m.best, a.job) : JsonNode())
                    .set("refused", m.refused ? message_json(*m.refused) : JsonNode()));
  JsonNode counts = JsonNode::object();
  counts.set("plans", a.plans)
      .set("decided", a.decided)
      .set("timed", a.timed)
      .set("memory_of_one_rank", a.weighed)
      .set("memory_of_all_ranks", a.whole);
  const PlanReport* r = a.best ? &*a.best : a.nearest ? &*a.nearest : nullptr;
  JsonNode results = JsonNode::object();
  results.set("answer", is_yes(a)).set("partial", a.partial);
  if (r) results.set("report", report_json(*r));
  results.set("families", families)
      .set("front", front)
      .set("scaling", scaling)
      .set("methods", methods)
      .set("relax", relax)
      .set("search", counts);
  return envelope(asked, &a.job, a.assumptions, results, r ? r->warnings : std::vector<Message>{});
}

bool is_yes(const PlanAnswer& a) { return a.best.has_value(); }

}  // namespace trigon
