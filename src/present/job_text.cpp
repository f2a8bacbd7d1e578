#include "present/job_text.hpp"

#include <array>

#include "hardware/parse.hpp"
#include "present/numbers.hpp"

namespace trigon {
namespace {

struct TermNames {
  PresentMessage label;
  std::string_view json;
};
constexpr std::array kTerms = {
    TermNames{PresentMessage::term_weights, "weights_bytes"},
    TermNames{PresentMessage::term_kv_cache, "kv_cache_bytes"},
    TermNames{PresentMessage::term_activations, "activations_bytes"},
    TermNames{PresentMessage::term_logits, "logits_bytes"},
    TermNames{PresentMessage::term_media, "multimodal_profile_bytes"},
    TermNames{PresentMessage::term_gradients, "gradients_bytes"},
    TermNames{PresentMessage::term_master_weights, "master_weights_bytes"},
    TermNames{PresentMessage::term_optimizer, "optimizer_bytes"},
    TermNames{PresentMessage::term_adapters, "adapters_bytes"},
    TermNames{PresentMessage::term_gathered, "gathered_bytes"},
    TermNames{PresentMessage::term_workspaces, "workspaces_bytes"},
    TermNames{PresentMessage::term_context, "context_bytes"},
    TermNames{PresentMessage::term_libraries, "libraries_bytes"},
    TermNames{PresentMessage::term_collectives, "collectives_bytes"},
    TermNames{PresentMessage::term_graphs, "graphs_bytes"},
    TermNames{PresentMessage::term_fragmentation, "fragmentation_bytes"}};
static_assert(kTerms.size() == kMemoryTerms, "a memory term has no label");

std::string words(PresentMessage id, Language l, std::initializer_list<std::string> args) {
  Message m{message_id(id), {}};
  for (const std::string& a : args) m.args.emplace_back(a);
  return render(m, l);
}

void add(std::string& out, const std::string& part, const char* separator = ", ") {
  if (part.empty()) return;
  if (!out.empty()) out += separator;
  out += part;
}

std::string limit_in_words(const char* name, const std::optional<LatencyLimit>& limit, Language l) {
  if (!limit) return {};
  return words(
      PresentMessage::load_limit, l,
      {name, trimmed_number(limit->percentile, 4), in_words(limit->at_most.in_base(), "s")});
}

std::string lengths_in_words(std::int64_t input, std::int64_t output, Language l) {
  return words(PresentMessage::load_lengths, l, {whole(input), whole(output)});
}

std::string deadline_in_words(const std::optional<Seconds>& d, Language l) {
  return d ? words(PresentMessage::load_deadline, l, {in_words(d->in_base(), "s")}) : std::string();
}

// "224 x 224", "30 s": what one item measures.
std::string size_in_words(const Item& item) {
  if (item.audio_seconds > 0) return in_words(item.audio_seconds, "s");
  std::string out;
  for (std::int64_t side : item.size) add(out, whole(side), " x ");
  return out;
}

void add_item(std::string& load, const Item& item, Language l) {
  const std::string size = size_in_words(item);
  if (!size.empty())
    add(load, words(PresentMessage::load_items, l, {items_in_words(item, l), size}));
  if (item.steps > 1) add(load, words(PresentMessage::load_steps, l, {whole(item.steps)}));
}

template <class Training>
void add_training(std::string& load, const Training& t, Language l) {
  if (t.item && t.sequence == 1) {
    add(load, words(PresentMessage::load_item_train, l,
                    {short_count(t.tokens), items_in_words(*t.item, l), whole(t.global_batch)}));
    add_item(load, *t.item, l);
  } else {
    add(load, words(PresentMessage::load_train, l,
                    {short_count(t.tokens), whole(t.sequence), whole(t.global_batch)}));
  }
}

}  // namespace

std::string items_in_words(const Item& item, Language l) {
  constexpr PresentMessage names[] = {PresentMessage::item_sequences, PresentMessage::item_images,
                                      PresentMessage::item_volumes, PresentMessage::item_samples,
                                      PresentMessage::item_utterances};
  return std::string(label(names[static_cast<std::size_t>(item.unit)], l));
}

std::string unit_in_words(Metric m, const std::optional<Item>& item, Language l) {
  if (item && (m == Metric::requests_per_second || m == Metric::capacity_requests_per_second ||
               m == Metric::samples_per_second_per_gpu))
    return words(PresentMessage::item_rate, l, {items_in_words(*item, l)});
  return metric_info(m).unit;
}

std::string metric_label(Metric m, const std::optional<Item>& item, Language l) {
  if (item) switch (m) {
      case Metric::requests_per_second:
        return std::string(label(PresentMessage::item_throughput, l));
      case Metric::e2e_seconds:
        return std::string(label(PresentMessage::item_latency, l));
      case Metric::max_sequences:
        return std::string(label(PresentMessage::item_largest_batch, l));
      case Metric::usd_per_million_items:
        return words(PresentMessage::item_cost, l, {items_in_words(*item, l)});
      default:
        break;
    }
  return metric_label(m, l);
}

std::string metric_label(Metric m, Language language) {
  std::string_view name = metric_info(m).json;
  for (const MessageEntry& e : all_messages())
    if (e.id.room == Room::present && e.name == name)
      return std::string(message_text(e.id, language));
  return std::string(name);  // a test holds that every metric has its label
}
PresentMessage memory_term_label(MemoryTerm t) { return kTerms[static_cast<std::size_t>(t)].label; }
std::string_view memory_term_json(MemoryTerm t) { return kTerms[static_cast<std::size_t>(t)].json; }

std::string_view basis_label(Basis b, Language language) {
  constexpr PresentMessage labels[] = {
      PresentMessage::basis_exact,        PresentMessage::basis_measured,
      PresentMessage::basis_interpolated, PresentMessage::basis_calibrated,
      PresentMessage::basis_analytic,     PresentMessage::basis_bound};
  return label(labels[static_cast<std::size_t>(b)], language);
}

bool is_training(const Job& job) {
  return std::holds_alternative<Train>(job) || std::holds_alternative<FineTune>(job);
}

std::string job_in_words(const Job& job, const std::string& model, Language l) {
  std::string head, load;
  if (auto s = std::get_if<Serve>(&job)) {
    head = words(PresentMessage::job_serve, l, {model});
    if (s->item && s->rate)
      add(load, words(PresentMessage::load_item_rate, l,
                      {trimmed_number(s->rate->in_base()), items_in_words(*s->item, l)}));
    if (!s->item && s->rate)
      add(load, words(PresentMessage::load_rate, l, {in_words(s->rate->in_base(), "1/s")}));
    if (s->concurrency)
      add(load, words(PresentMessage::load_concurrency, l, {trimmed_number(*s->concurrency)}));
    if (s->item)
      add_item(load, *s->item, l);
    else
      add(load, lengths_in_words(s->input_tokens, s->output_tokens, l));
    add(load, limit_in_words("TTFT", s->limits.ttft, l));
    add(load, limit_in_words("TPOT", s->limits.tpot, l));
    add(load, limit_in_words("E2E", s->limits.e2e, l));
  } else if (auto b = std::get_if<Batch>(&job)) {
    head = words(PresentMessage::job_batch, l, {model});
    if (b->requests && !b->item)
      add(load, words(PresentMessage::load_rate, l, {short_count(*b->requests)}));
    if (b->requests && b->item)
      add(load, short_count(*b->requests) + " " + items_in_words(*b->item, l));
    if (b->item)
      add_item(load, *b->item, l);
    else
      add(load, lengths_in_words(b->input_tokens, b->output_tokens, l));
    add(load, deadline_in_words(b->deadline, l));
  } else if (auto t = std::get_if<Train>(&job)) {
    head = words(PresentMessage::job_train, l, {model});
    add_training(load, *t, l);
    add(load, deadline_in_words(t->deadline, l));
  } else if (auto f = std::get_if<FineTune>(&job)) {
    PresentMessage id = f->method == TuneMethod::full   ? PresentMessage::job_finetune_full
                        : f->method == TuneMethod::lora ? PresentMessage::job_finetune_lora
                                                        : PresentMessage::job_finetune_qlora;
    head = words(id, l, {model});
    add_training(load, *f, l);
    add(load, deadline_in_words(f->deadline, l));
  }
  return load.empty() ? head : head + " (" + load + ")";
}

std::string hardware_in_words(const Cluster& c) {
  if (!c.written.empty()) return printable(c.written);
  return c.accelerator ? write_hardware(c) : std::string("?");
}

std::string plan_in_words(const PlanReport& r) {
  std::string out = r.engine;
  add(out, write_plan(r.plan));
  if (r.narrowed) add(out, std::string(info(*r.narrowed).name));
  return out;
}

std::string metric_in_words(const PlanReport& r, Metric m, Language l) {
  if (!r[m]) return {};
  const std::string unit = unit_in_words(m, r.item, l);
  return metric_label(m, r.item, l) + " " +
         in_words(*r[m], unit, label(PresentMessage::between, l));
}

std::vector<Metric> deciding_metrics(const Job& job) {
  if (item_of(job) && !is_training(job)) {
    std::vector<Metric> out{Metric::requests_per_second, Metric::e2e_seconds};
    if (std::holds_alternative<Serve>(job))
      out.insert(out.end(), {Metric::e2e_percentile_seconds, Metric::capacity_requests_per_second,
                             Metric::utilization});
    out.insert(out.end(), {Metric::denoising_steps_per_second, Metric::audio_seconds_per_second,
                           Metric::memory_bytes, Metric::headroom_bytes, Metric::usd_per_hour,
                           Metric::usd_per_million_items, Metric::usd_total, Metric::usd_purchase,
                           Metric::power_watts});
    return out;
  }
  if (is_training(job))
    return {Metric::time_to_train_seconds,
            Metric::usd_total,
            item_of(job) ? Metric::samples_per_second_per_gpu : Metric::train_tokens_per_second,
            Metric::step_seconds,
            Metric::mfu,
            Metric::memory_bytes,
            Metric::headroom_bytes,
            Metric::usd_per_hour,
            Metric::usd_purchase,
            Metric::power_watts};
  if (std::holds_alternative<Batch>(job))
    return {Metric::output_tokens_per_second,
            Metric::total_tokens_per_second,
            Metric::usd_per_million_tokens,
            Metric::usd_total,
            Metric::memory_bytes,
            Metric::headroom_bytes,
            Metric::usd_per_hour,
            Metric::power_watts};
  return {Metric::ttft_seconds, Metric::ttft_percentile_seconds,
          Metric::tpot_seconds, Metric::tpot_percentile_seconds,
          Metric::e2e_seconds,  Metric::capacity_requests_per_second,
          Metric::utilization,  Metric::output_tokens_per_second,
          Metric::memory_bytes, Metric::headroom_bytes,
          Metric::usd_per_hour, Metric::usd_per_million_tokens,
          Metric::usd_purchase, Metric::power_watts};
}

std::string cost_in_words(const PlanReport& r, Payment payment, Language l) {
  auto value = [&](Metric m) -> std::string {
    return r[m] ? in_words(*r[m], metric_info(m).unit, label(PresentMessage::between, l))
                : std::string();
  };
  std::string out;
  if (payment == Payment::buy && r[Metric::usd_purchase])
    add(out, words(PresentMessage::cost_buy, l, {value(Metric::usd_purchase)}));
  add(out, value(Metric::usd_per_hour));
  if (out.empty()) add(out, value(Metric::usd_purchase));
  return out.empty() ? std::string(label(PresentMessage::cost_unknown, l)) : out;
}

}  // namespace trigon
