#include <algorithm>

#include "present/numbers.hpp"
#include "present/page.hpp"
#include "present/reports.hpp"

namespace trigon {
namespace {

std::string_view mark_label(FitMark m, Language l) {
  return label(m == FitMark::fits    ? PresentMessage::mark_fits
               : m == FitMark::tight ? PresentMessage::mark_tight
                                     : PresentMessage::mark_no,
               l);
}
Tone mark_tone(FitMark m) {
  return m == FitMark::fits ? Tone::good : m == FitMark::tight ? Tone::warning : Tone::bad;
}

// The number that says how fast: tokens per second of one user, or of the training job.
Metric speed_of(const Job& job) {
  if (item_of(job))
    return is_training(job) ? Metric::samples_per_second_per_gpu : Metric::requests_per_second;
  if (is_training(job)) return Metric::train_tokens_per_second;
  return std::holds_alternative<Batch>(job) ? Metric::output_tokens_per_second
                                            : Metric::decode_tokens_per_second_user;
}

std::vector<Metric> fit_metrics(const Job& job) {
  if (is_training(job))
    return {Metric::memory_bytes,
            Metric::usable_bytes,
            Metric::headroom_bytes,
            Metric::step_seconds,
            item_of(job) ? Metric::samples_per_second_per_gpu : Metric::train_tokens_per_second,
            Metric::time_to_train_seconds};
  if (item_of(job))
    return {Metric::memory_bytes,
            Metric::usable_bytes,
            Metric::headroom_bytes,
            Metric::max_sequences,
            Metric::e2e_seconds,
            Metric::requests_per_second,
            Metric::denoising_steps_per_second};
  return {Metric::memory_bytes,
          Metric::usable_bytes,
          Metric::headroom_bytes,
          Metric::kv_pool_bytes,
          Metric::kv_capacity_tokens,
          Metric::max_context_tokens,
          Metric::max_sequences,
          Metric::prefill_seconds,
          Metric::decode_tokens_per_second_user,
          Metric::output_tokens_per_second};
}

std::string amount(const PlanReport& r, Metric m) {
  return r[m] ? in_words(r[m]->value, metric_info(m).unit) : std::string("-");
}

std::string verdict(const FitRow& row, const Job& job, const std::string& model, Language l) {
  const PlanReport& r = row.report;
  std::string job_text = job_in_words(job, model, l), hardware = hardware_in_words(r.cluster);
  if (row.mark == FitMark::fits)
    return say(PresentMessage::verdict_fits, l,
               {job_text, hardware, amount(r, Metric::headroom_bytes)});
  if (row.mark == FitMark::tight)
    return say(PresentMessage::verdict_tight, l,
               {job_text, hardware, amount(r, Metric::headroom_bytes)});
  std::string out = say(PresentMessage::verdict_does_not_fit, l, {job_text, hardware});
  if (row.binding) return out + " " + sentence(render(*row.binding, l));
  if (r[Metric::memory_bytes] && r[Metric::usable_bytes])
    out += " " + say(PresentMessage::verdict_short_by, l,
                     {amount(r, Metric::memory_bytes), amount(r, Metric::usable_bytes)});
  return out;
}

std::string on_host(const FittingChange& part, Language l) {
  const PlanReport& r = part.report;
  std::string out = say(PresentMessage::fits_on_host, l,
                        {part.flags, amount(r, Metric::memory_bytes),
                         amount(r, Metric::usable_bytes), in_words(r.memory.host.total(), "B")});
  if (!part.roomier.empty())
    out += " " + say(PresentMessage::fits_on_host_roomier, l, {part.roomier});
  return out;
}

// How much of what the label says is left to use, and what took the rest.
void put_usable(Page& page, const PlanReport& r) {
  const Accelerator* card = r.cluster.accelerator;
  if (!card || !r[Metric::usable_bytes] || !(r.program_bytes > 0)) return;
  // Labels count a GB of memory as 2^30 bytes.
  const double nominal = card->memory_nominal.in_base() / 1e9 * kGi;
  const double usable = r[Metric::usable_bytes]->value;
  double reported = card->memory_reported ? card->memory_reported->in_base() : nominal;
  // Switched error correction changes what is reported.
  if (r.cluster.card.ecc && !r.cluster.card.memory)
    reported =
        r.program_bytes + card->memory_reserved.in_base() + r.cluster.card.memory_used.in_base();
  const double runtime = r.memory[MemoryTerm::context] + r.memory[MemoryTerm::libraries] +
                         r.memory[MemoryTerm::collectives] + r.memory[MemoryTerm::graphs];
  page.blank();
  page.paragraph(say(
      PresentMessage::usable_share, page.language(),
      {significant(100 * usable / nominal, 2), in_words(nominal, "B"), in_words(reported, "B"),
       in_words(r.program_bytes, "B"), r.engine, in_words(usable, "B"), in_words(runtime, "B")}));
}

std::string one_card(const FitAnswer& a, const Asked& asked, const TextStyle& style) {
  const FitRow& row = a.rows.front();
  Page page(style);
  std::string said = verdict(row, a.job, asked.model, style.language);
  if (a.on_host) said += " " + on_host(*a.on_host, style.language);
  page.paragraph(said, mark_tone(row.mark));
  if (style.one_line) return page.finish();
  page.blank();
  put_metrics(page, row.report, fit_metrics(a.job), a.job);
  page.raw("  " + std::string(label(PresentMessage::col_plan, style.language)) + ": " +
           plan_in_words(row.report) + "\n");
  put_memory(page, row.report, trains(a.job));
  put_usable(page, row.report);
  if (a.smallest)
    page.paragraph(say(PresentMessage::smallest_card, style.language,
                       {hardware_in_words(a.smallest->report.cluster),
                        amount(a.smallest->report, Metric::usable_bytes)}));
  put_assumptions(page, a.assumptions);
  put_warnings(page, row.report.warnings);
  if (style.explain && a.derivation) put_derivation(page, *a.derivation);
  return page.finish();
}

// Columns that say how well the rows fit; the first column names them.
struct FitColumns {
  NumberColumn need{"B"}, usable{"B"}, free{"B"}, context{"tokens"}, sequences{""}, speed;
  Metric speed_metric;
  bool training, items;

  FitColumns(const Job* job, const std::vector<const FitRow*>& rows)
      : speed(job ? unit_in_words(speed_of(*job), item_of(*job), Language::english) : "tokens/s"),
        speed_metric(job ? speed_of(*job) : Metric::decode_tokens_per_second_user),
        training(job && is_training(*job)),
        items(job && item_of(*job).has_value()) {
    for (const FitRow* row : rows) {
      auto see = [&](NumberColumn& c, Metric m) {
        if (row->report[m]) c.see(row->report[m]->value);
      };
      see(need, Metric::memory_bytes);
      see(usable, Metric::usable_bytes);
      see(free, Metric::headroom_bytes);
      see(speed, speed_metric);
    }
  }
  void headers(std::vector<Column>& out, Language l) const {
    auto name = [&](PresentMessage id) { return std::string(label(id, l)); };
    out.push_back({name(PresentMessage::col_mark)});
    out.push_back({need.header(name(PresentMessage::col_need)), true, 3});
    out.push_back({usable.header(name(PresentMessage::col_usable)), true, 4});
    out.push_back({free.header(name(PresentMessage::col_free)), true});
    if (!training) {
      if (!items) out.push_back({name(PresentMessage::col_context), true, 1});
      out.push_back({name(PresentMessage::col_sequences), true, 2});
    }
    out.push_back({speed.header(name(items ? PresentMessage::col_throughput
                                     : speed_metric == Metric::decode_tokens_per_second_user
                                         ? PresentMessage::col_user_speed
                                         : PresentMessage::col_train_speed)),
                   true, 1});
  }
  void cells(std::vector<Cell>& out, const FitRow& row, Language l) const {
    const PlanReport& r = row.report;
    out.emplace_back(std::string(mark_label(row.mark, l)), mark_tone(row.mark));
    out.emplace_back(need.cell(r[Metric::memory_bytes]));
    out.emplace_back(usable.cell(r[Metric::usable_bytes]));
    out.emplace_back(free.cell(r[Metric::headroom_bytes]));
    if (!training) {
      if (!items) out.emplace_back(context.cell(r[Metric::max_context_tokens]));
      out.emplace_back(sequences.cell(r[Metric::max_sequences]));
    }
    out.emplace_back(speed.cell(r[speed_metric]));
  }
};

struct MarkCounts {
  int fits = 0, tight = 0, no = 0;
  void count(FitMark m) { ++(m == FitMark::fits ? fits : m == FitMark::tight ? tight : no); }
};

std::string every_card(const FitAnswer& a, const Asked& asked, const TextStyle& style) {
  Language l = style.language;
  MarkCounts counts;
  std::vector<const FitRow*> rows;
  for (const FitRow& row : a.rows) {
    counts.count(row.mark);
    rows.push_back(&row);
  }
  Page page(style);
  page.paragraph(
      say(PresentMessage::verdict_fit_counts, l,
          {job_in_words(a.job, asked.model, l), std::to_string(counts.fits),
           std::to_string(rows.size()), std::to_string(counts.tight), std::to_string(counts.no)}),
      counts.fits + counts.tight ? Tone::good : Tone::bad);
  if (style.one_line) return page.finish();
  page.blank();
  FitColumns columns(&a.job, rows);
  std::vector<Column> headers{{std::string(label(PresentMessage::col_hardware, l)), false, 0, 14}};
  columns.headers(headers, l);
  Table t(std::move(headers));
  for (const FitRow* row : rows) {
    std::vector<Cell> cells{hardware_in_words(row->report.cluster)};
    columns.cells(cells, *row, l);
    t.row(std::move(cells));
  }
  page.table(t, 0, style.top);
  put_assumptions(page, a.assumptions);
  return page.finish();
}

}  // namespace

std::string fit_text(const FitAnswer& a, const Asked& asked, const TextStyle& style) {
  return a.rows.size() == 1 ? one_card(a, asked, style) : every_card(a, asked, style);
}

std::string model_fit_text(const std::vector<ModelFitRow>& models, const Asked& asked,
                           const TextStyle& style) {
  Language l = style.language;
  MarkCounts counts;
  std::vector<const FitRow*> rows;
  for (const ModelFitRow& m : models) {
    counts.count(m.fit.mark);
    rows.push_back(&m.fit);
  }
  Page page(style);
  std::string hardware = asked.hardware.empty() ? "?" : asked.hardware.front();
  page.paragraph(say(PresentMessage::verdict_models, l,
                     {std::to_string(counts.fits), std::to_string(rows.size()), hardware,
                      std::to_string(counts.tight)}),
                 counts.fits + counts.tight ? Tone::good : Tone::bad);
  if (style.one_line) return page.finish();
  page.blank();
  FitColumns columns(nullptr, rows);
  std::vector<Column> headers{{std::string(label(PresentMessage::col_model, l)), false, 0, 16},
                              {std::string(label(PresentMessage::col_parameters, l)), true, 2},
                              {std::string(label(PresentMessage::col_format, l)), false, 3}};
  columns.headers(headers, l);
  Table t(std::move(headers));
  for (const ModelFitRow& m : models) {
    std::vector<Cell> cells{printable(m.model), short_count(m.parameters), info(m.weights).name};
    columns.cells(cells, m.fit, l);
    t.row(std::move(cells));
  }
  page.table(t, 0, style.top);
  page.blank();
  page.paragraph(label(PresentMessage::models_assumed, l), Tone::faint);
  return page.finish();
}

bool is_yes(const FitAnswer& a) {
  return std::any_of(a.rows.begin(), a.rows.end(),
                     [](const FitRow& r) { return r.mark != FitMark::no; });
}
bool is_yes(const std::vector<ModelFitRow>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const ModelFitRow& r) { return r.fit.mark != FitMark::no; });
}

}  // namespace trigon
