// fit, estimate, recommend, plan, compare.

#include "hardware/parse.hpp"
#include "interrupt.hpp"
#include "present/app_messages.hpp"
#include "present/reports.hpp"
#include "session.hpp"
#include "what_if.hpp"

namespace trigon {
namespace {

tl::unexpected<Error> lacks(const Call& call, AppMessage what) {
  const VerbInfo& v = *call.line.verb;
  return fail(ErrorCode::bad_argument, message(what, v.name), "",
              message(AppMessage::try_command, v.examples.front()));
}

// Only `recommend` and `plan` may choose a format by themselves.
Result<void> refuse_any_format(const Call& call) {
  const Setting* quant = call.settings.find("quant");
  if (!quant || quant->text != "any") return {};
  return fail(ErrorCode::bad_argument, message(AppMessage::any_only_recommends), quant->origin,
              message(BaseMessage::write_one_of, "--quant fp8, int4, q4_k ..."));
}

template <class Answer, class Text, class Json>
Output written(const Answer& answer, const Call& call, const Session& s, Text text, Json json) {
  return {call.json ? write_json(json(answer, s.asked)) : text(answer, s.asked, call.style),
          is_yes(answer) ? exit_done : exit_no};
}

// What a reader should know about the prices that decided: old, undated, of the card alone.
void warn_of_prices(Call& call, Session& s, const PlanReport& best) {
  const Accelerator* card = best.cluster.accelerator;
  if (!card) return;
  const Objective& o = s.asking.objective;
  std::vector<Message> notes;
  if (o.payment != Payment::buy) {
    if (auto quote = s.all->prices.rent(*card, PriceKind::on_demand, o.as_of)) notes = quote->notes;
  } else if (auto quote = s.all->prices.buy(*card, o.as_of)) {
    notes = quote->notes;
  }
  call.warnings.insert(call.warnings.end(), notes.begin(), notes.end());
  s.asked.warnings = call.warnings;
}

// One model on one piece of hardware, both of which must be named.
struct OnHardware {
  Session session;
  Cluster cluster;
};

Result<OnHardware> open_on_hardware(Call& call) {
  const Setting* on = call.settings.find("on");
  if (call.line.arguments.empty()) return lacks(call, AppMessage::missing_model);
  if (!on) return lacks(call, AppMessage::missing_hardware);
  auto s = open_session(call, call.line.arguments[0]);
  if (!s) return tl::unexpected(s.error());
  auto cluster = hardware_of(*s, on->text, on->origin);
  if (!cluster) return tl::unexpected(cluster.error());
  s->asked.hardware = {on->text};
  return OnHardware{std::move(*s), std::move(*cluster)};
}

}  // namespace

Result<Output> run_fit(Call& call) {
  if (auto good = expect_arguments(call, 1); !good) return tl::unexpected(good.error());
  if (auto good = refuse_any_format(call); !good) return tl::unexpected(good.error());
  const Setting* on = call.settings.find("on");
  std::string model = call.line.arguments.empty() ? std::string() : call.line.arguments[0];
  if (model.empty() && !on) return lacks(call, AppMessage::missing_model);
  auto s = open_session(call, model);
  if (!s) return tl::unexpected(s.error());
  if (!on) {
    auto answer = fit_everywhere(*s->all, s->question);
    if (!answer) return tl::unexpected(answer.error());
    return written(*answer, call, *s, fit_text, fit_json);
  }
  auto cluster = hardware_of(*s, on->text, on->origin);
  if (!cluster) return tl::unexpected(cluster.error());
  s->asked.hardware = {on->text};
  if (model.empty()) {
    auto rows = models_that_fit(*s->all, s->question, *cluster);
    if (!rows) return tl::unexpected(rows.error());
    return written(*rows, call, *s, model_fit_text, model_fit_json);
  }
  auto answer = fit(*s->all, s->question, *cluster);
  if (!answer) return tl::unexpected(answer.error());
  answer->on_host = fit_on_host(*s->all, s->question, *cluster, *answer);
  // Degrees that were fixed divide over several cards: then one card is no answer.
  const PlanRequest& fixed = s->question.plan;
  if (answer->rows.size() == 1 && !fixed.tensor && !fixed.pipeline && !fixed.data)
    if (auto all = fit_everywhere(*s->all, s->question);
        all && !all->rows.empty() && all->rows.front().mark != FitMark::no)
      answer->smallest = std::move(all->rows.front());
  return written(*answer, call, *s, fit_text, fit_json);
}

Result<Output> run_estimate(Call& call) {
  if (auto good = expect_arguments(call, 1); !good) return tl::unexpected(good.error());
  if (auto good = refuse_any_format(call); !good) return tl::unexpected(good.error());
  auto named = open_on_hardware(call);
  if (!named) return tl::unexpected(named.error());
  Session* s = &named->session;
  const Cluster* cluster = &named->cluster;
  auto cases = what_if_cases(call, *s, *cluster);
  if (!cases) return tl::unexpected(cases.error());
  if (!cases->empty()) {
    auto answer = what_if(*s->all, s->question, *cluster, std::move(*cases));
    if (!answer) return tl::unexpected(answer.error());
    return written(*answer, call, *s, what_if_text, what_if_json);
  }
  auto answer = estimate(*s->all, s->question, *cluster);
  if (!answer) return tl::unexpected(answer.error());
  return written(*answer, call, *s, estimate_text, estimate_json);
}

Result<Output> run_recommend(Call& call) {
  if (auto good = expect_arguments(call, 1); !good) return tl::unexpected(good.error());
  if (call.line.arguments.empty()) return lacks(call, AppMessage::missing_model);
  auto s = open_session(call, call.line.arguments[0]);
  if (!s) return tl::unexpected(s.error());
  const SoftStop stop;
  auto answer = recommend(*s->all, s->question, s->asking.objective, stop.flag());
  if (!answer) return tl::unexpected(answer.error());
  if (!answer->ranked.empty()) warn_of_prices(call, *s, answer->ranked.front().report);
  Output out = written(*answer, call, *s, recommend_text, recommend_json);
  if (answer->partial) out.exit_code = exit_interrupted;
  return out;
}

Result<Output> run_plan(Call& call) {
  if (auto good = expect_arguments(call, 1); !good) return tl::unexpected(good.error());
  auto named = open_on_hardware(call);
  if (!named) return tl::unexpected(named.error());
  Session* s = &named->session;
  const Cluster* cluster = &named->cluster;
  const SoftStop stop;
  auto answer = plan_job(*s->all, s->question, *cluster, s->asking.objective, stop.flag());
  if (!answer) return tl::unexpected(answer.error());
  if (answer->best) warn_of_prices(call, *s, *answer->best);
  Output out = written(*answer, call, *s, plan_text, plan_answer_json);
  if (answer->partial) out.exit_code = exit_interrupted;
  return out;
}

Result<Output> run_compare(Call& call) {
  if (auto good = refuse_any_format(call); !good) return tl::unexpected(good.error());
  const std::vector<std::string>& words = call.line.arguments;
  if (words.size() < 3) return lacks(call, AppMessage::compare_needs_two);
  auto s = open_session(call, words.back());
  if (!s) return tl::unexpected(s.error());
  std::vector<Cluster> clusters;
  std::vector<Assumption> columns;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    auto candidates = candidates_of(*s, words[i], "");
    if (!candidates) return tl::unexpected(candidates.error());
    std::string names;
    for (const Cluster& c : *candidates) names += (names.empty() ? "" : ", ") + write_hardware(c);
    // Side by side, whichever was meant is among them.
    if (candidates->size() > 1)
      columns.push_back({words[i], message(AppMessage::compared_each, names)});
    clusters.insert(clusters.end(), candidates->begin(), candidates->end());
    s->asked.hardware.push_back(words[i]);
  }
  auto answer = compare(*s->all, s->question, clusters, s->asking.objective);
  if (!answer) return tl::unexpected(answer.error());
  // What the clusters of the cases point to lives until the answer is written.
  std::vector<std::vector<WhatIf>> cases;
  for (const Cluster& c : clusters) {
    auto of_cluster = what_if_cases(call, *s, c, true);
    if (!of_cluster) return tl::unexpected(of_cluster.error());
    cases.push_back(std::move(*of_cluster));
  }
  for (std::size_t k = 0; k < cases.front().size(); ++k) {
    std::vector<Cluster> changed_clusters;
    for (const std::vector<WhatIf>& of_cluster : cases)
      changed_clusters.push_back(of_cluster[k].cluster);
    const WhatIf& one = cases.front()[k];
    auto then = compare(*s->all, one.question, changed_clusters, s->asking.objective);
    if (!then) {
      Error e = then.error();
      e.where = "--what-if " + one.changes;
      return tl::unexpected(std::move(e));
    }
    then->changes = one.changes;
    answer->what_if.push_back(std::move(*then));
  }
  answer->assumptions.insert(answer->assumptions.begin(), columns.begin(), columns.end());
  return written(*answer, call, *s, compare_text, compare_json);
}

}  // namespace trigon
