// Where the time of a step goes, operator by operator, against the roofline of the card.

#include <algorithm>
#include <array>

#include "present/numbers.hpp"
#include "present/page.hpp"

namespace trigon {
namespace {

struct PartName {
  const char* name;  // in JSON and after --explain=
  PresentMessage heading;
};
constexpr PartName kParts[] = {{"prefill", PresentMessage::steps_prefill},
                               {"decode", PresentMessage::steps_decode},
                               {"batch", PresentMessage::steps_batch},
                               {"train", PresentMessage::steps_train}};
const PartName& name_of(StepPart p) { return kParts[static_cast<std::size_t>(p)]; }

struct RestName {
  const char* json;
  PresentMessage text;
};
constexpr RestName kRest[] = {{"host_floor", PresentMessage::rest_host_floor},
                              {"beside_products", PresentMessage::rest_beside},
                              {"step_overhead", PresentMessage::rest_step_overhead},
                              {"request_overhead", PresentMessage::rest_request_overhead},
                              {"sends", PresentMessage::rest_sends},
                              {"recompute", PresentMessage::rest_recompute},
                              {"optimizer", PresentMessage::rest_optimizer},
                              {"exposed_communication", PresentMessage::rest_exposed},
                              {"slowed_by_communication", PresentMessage::rest_slowed},
                              {"offloaded_activations", PresentMessage::rest_offloaded},
                              {"data_loading", PresentMessage::rest_loader},
                              {"bubble", PresentMessage::rest_bubble},
                              {"other", PresentMessage::rest_other}};
const RestName& name_of(StepRest r) { return kRest[static_cast<std::size_t>(r)]; }

struct BoundName {
  const char* json;
  PresentMessage text;
};
constexpr BoundName kBounds[] = {{"compute", PresentMessage::binds_compute},
                                 {"bandwidth", PresentMessage::binds_bandwidth},
                                 {"link", PresentMessage::binds_link},
                                 {"launch", PresentMessage::binds_launch}};
const BoundName& name_of(Bound b) { return kBounds[static_cast<std::size_t>(b)]; }

constexpr const char* kKinds[] = {
    "gemm",        "grouped_gemm", "convolution",     "attention",     "scan",
    "elementwise", "gather",       "all_reduce",      "all_gather",    "reduce_scatter",
    "all_to_all",  "send",         "expert_dispatch", "expert_combine"};

std::string plain(double v) {
  std::string s = trimmed_number(v, v >= 1000 ? 7 : 3);
  s.erase(std::remove(s.begin(), s.end(), ','), s.end());
  return s;
}

// "8x4096x14336": rows, columns and the dimension that is summed over; what else has its size.
std::string dimensions(const Operator& op) {
  switch (op.kind) {
    case OperatorKind::gemm:
    case OperatorKind::grouped_gemm:
    case OperatorKind::convolution: {
      const bool own = op.kind == OperatorKind::convolution;
      const double m = own ? op.m : op.m / op.groups;
      std::string one = plain(m) + "x" + plain(op.n) + "x" + plain(op.k);
      return op.groups > 1 ? plain(op.groups) + "*(" + one + ")" : one;
    }
    case OperatorKind::attention:
      return plain(op.sequences) + "*" + plain(op.m) + "*(" + plain(op.query_tokens) + "x" +
             plain(op.key_tokens) + ")";
    case OperatorKind::scan:
    case OperatorKind::elementwise:
    case OperatorKind::gather:
      return in_words(op.data_bytes + op.weight_bytes, "B");
    default:
      return in_words(op.payload_bytes, "B") + " / " + std::to_string(op.ranks);
  }
}

// Collectives of one purpose are told apart by what they do: "mlp.all_gather".
std::string name_of(const OperatorLine& x) {
  std::string name = x.op.name;
  if (x.collective())
    name = name.substr(0, name.rfind('.')) + "." + kKinds[static_cast<std::size_t>(x.op.kind)];
  if (x.backward) name += ".backward";
  return x.component.empty() ? name : x.component + "/" + name;
}

std::string percent(double share) { return significant(100 * share, share < 0.1 ? 2 : 3); }

double of_peak(const OperatorLine& l) {
  return l.unit.peak > 0 && l.time.seconds > 0 ? l.op.flops / l.time.seconds / l.unit.peak : 0;
}
double of_bandwidth(const OperatorLine& l, double bandwidth) {
  return bandwidth > 0 && l.time.seconds > 0 ? l.bytes() / l.time.seconds / bandwidth : 0;
}

std::string heading_of(const StepBreakdown& s, const Job& job, Language l) {
  const std::string sequences = trimmed_number(s.sequences, 4);
  if (s.part != StepPart::item_batch) return say(name_of(s.part).heading, l, {sequences});
  const auto item = item_of(job);
  return say(name_of(s.part).heading, l,
             {sequences, item ? items_in_words(*item, l)
                              : std::string(label(PresentMessage::item_sequences, l))});
}

// Each unit that the operators use, with the intensity at which its peak meets the bandwidth.
void put_ridges(Page& page, const StepBreakdown& s) {
  std::vector<MathMode> told;
  for (const OperatorLine& line : s.operators) {
    if (line.collective() || line.op.kind == OperatorKind::elementwise ||
        line.op.kind == OperatorKind::gather || line.unit.peak <= 0 || s.bandwidth <= 0)
      continue;
    if (std::find(told.begin(), told.end(), line.unit.mode) != told.end()) continue;
    told.push_back(line.unit.mode);
    page.paragraph(
        say(PresentMessage::steps_ridge, page.language(),
            {trimmed_number(line.unit.peak / s.bandwidth), in_words(line.unit.peak, "FLOP/s"),
             std::string(name_of(line.unit.mode)), in_words(s.bandwidth, "B/s")}),
        Tone::faint, 2, 2);
  }
}

void put_bounds(Page& page, const StepBreakdown& s) {
  Language l = page.language();
  std::string list;
  auto add = [&](PresentMessage what, double seconds) {
    if (seconds < 0.0005 * s.seconds) return;
    list += (list.empty() ? "" : ", ") + std::string(label(what, l)) + " " +
            significant(100 * seconds / s.seconds, 2) + " %";
  };
  for (Bound b : {Bound::compute, Bound::bandwidth, Bound::link, Bound::latency})
    add(name_of(b).text, s.bound_by(b));
  for (const RestLine& r : s.rest) add(name_of(r.what).text, r.seconds);
  page.paragraph(say(PresentMessage::steps_bound, l, {list}), Tone::plain, 2, 2);
}

void put_step(Page& page, const StepBreakdown& s, const Job& job) {
  Language l = page.language();
  page.heading(heading_of(s, job, l));
  NumberColumn time("s");
  const std::size_t most =
      page.style().top > 0 ? static_cast<std::size_t>(page.style().top) : s.operators.size();
  const std::size_t shown = std::min(s.operators.size(), most);
  time.see(s.seconds);
  auto column = [&](PresentMessage m, bool number, int priority, int shrink = 0) {
    return Column{std::string(label(m, l)), number, priority, shrink};
  };
  // Where operators are alike by name, their sizes tell more than their intensities.
  bool alike = false;
  for (std::size_t i = 0; i < shown; ++i)
    for (std::size_t k = 0; k < i; ++k)
      alike = alike || name_of(s.operators[i]) == name_of(s.operators[k]);
  Table t({column(PresentMessage::col_operator, false, 0, 19),
           column(PresentMessage::col_dimensions, false, alike ? 2 : 5),
           column(PresentMessage::col_calls, true, 6),
           {time.header(label(PresentMessage::col_time, l)), true},
           column(PresentMessage::col_share, true, 0),
           column(PresentMessage::col_bound, false, 1),
           {"FLOP/B", true, 4},
           column(PresentMessage::col_flops_share, true, 3),
           column(PresentMessage::col_bytes_share, true, 3)});
  for (std::size_t i = 0; i < shown; ++i) {
    const OperatorLine& x = s.operators[i];
    const bool wire = x.collective();
    t.row({name_of(x), dimensions(x.op), trimmed_number(x.calls, 6), time.cell(x.seconds),
           percent(x.seconds / s.seconds), label(name_of(x.time.bound).text, l),
           wire ? std::string("-") : significant(x.intensity(), 3),
           wire ? std::string("-") : percent(of_peak(x)),
           wire ? std::string("-") : percent(of_bandwidth(x, s.bandwidth))});
  }
  auto total = [&](std::string name, double seconds) {
    t.row({std::move(name), "", "", time.cell(seconds), percent(seconds / s.seconds), "", "", "",
           ""});
  };
  if (shown < s.operators.size()) {
    double further = 0;
    for (std::size_t i = shown; i < s.operators.size(); ++i) further += s.operators[i].seconds;
    total(say(PresentMessage::rest_operators, l, {std::to_string(s.operators.size() - shown)}),
          further);
  }
  for (const RestLine& r : s.rest) total(std::string(label(name_of(r.what).text, l)), r.seconds);
  total(std::string(label(PresentMessage::row_sum, l)), s.seconds);
  page.table(t, 2);
  put_bounds(page, s);
  put_ridges(page, s);
}

}  // namespace

bool put_steps(Page& page, const PlanReport& r, const Job& job) {
  const std::string& term = page.style().explain_term;
  bool any = false;
  for (const StepBreakdown& s : r.steps) {
    if (!term.empty() && term != "operators" && term != name_of(s.part).name) continue;
    put_step(page, s, job);
    put_timeline(page, s);
    any = true;
  }
  return any;
}

JsonNode steps_json(const std::vector<StepBreakdown>& steps) {
  JsonNode out = JsonNode::array();
  for (const StepBreakdown& s : steps) {
    JsonNode operators = JsonNode::array(), rest = JsonNode::array();
    for (const OperatorLine& x : s.operators) {
      JsonNode o = JsonNode::object();
      o.set("name", x.op.name).set("kind", kKinds[static_cast<std::size_t>(x.op.kind)]);
      if (!x.component.empty()) o.set("component", x.component);
      if (s.part == StepPart::train_step) o.set("pass", x.backward ? "backward" : "forward");
      o.set("dimensions", dimensions(x.op))
          .set("calls", x.calls)
          .set("seconds", x.seconds)
          .set("share", x.seconds / s.seconds)
          .set("binds", name_of(x.time.bound).json);
      if (x.collective()) {
        o.set("payload_bytes", x.op.payload_bytes)
            .set("ranks", static_cast<std::int64_t>(x.op.ranks));
      } else {
        o.set("weights", info(x.op.weights).name)
            .set("activations", info(x.op.activations).name)
            .set("flops", x.op.flops)
            .set("weight_bytes", x.op.weight_bytes)
            .set("data_bytes", x.op.data_bytes)
            .set("unit", trigon::name_of(x.unit.mode))
            .set("peak_flops_per_second", x.unit.peak)
            .set("flops_per_byte", x.intensity())
            .set("ridge_flops_per_byte", s.bandwidth > 0 ? x.unit.peak / s.bandwidth : 0)
            .set("share_of_peak", of_peak(x))
            .set("share_of_bandwidth", of_bandwidth(x, s.bandwidth));
      }
      operators.add(o);
    }
    for (const RestLine& r : s.rest)
      rest.add(JsonNode::object().set("name", name_of(r.what).json).set("seconds", r.seconds));
    JsonNode one = JsonNode::object();
    if (s.part == StepPart::train_step) one.set("timeline", timeline_json(s));
    out.add(one.set("step", name_of(s.part).name)
                .set("seconds", s.seconds)
                .set("sequences", s.sequences)
                .set("bandwidth_bytes_per_second", s.bandwidth)
                .set("operators", operators)
                .set("rest", rest));
  }
  return out;
}

}  // namespace trigon
