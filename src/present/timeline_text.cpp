// A training step as a timeline: its parts, and what each pipeline stage does when.

#include <algorithm>
#include <array>

#include "present/numbers.hpp"
#include "present/page.hpp"

namespace trigon {
namespace {

constexpr int kColumns = 66, kMostStages = 16;

// The mark of a pass: capitals for micro-batches of even number, so that neighbours differ.
char mark_of(const StageEvent& e) {
  constexpr const char* kMarks[] = {"Ff", "Bb", "Ww"};
  return kMarks[static_cast<std::size_t>(e.kind)][e.micro_batch % 2];
}

double rest_of(const StepBreakdown& s, StepRest what) {
  for (const RestLine& r : s.rest)
    if (r.what == what) return r.seconds;
  return 0;
}

// What fills most of each column, stage by stage; '.' idles.
std::vector<std::string> drawn(const StepBreakdown& s) {
  const double cell = s.seconds / kColumns;
  using Weights = std::array<double, 256>;
  std::vector<std::vector<Weights>> filled(static_cast<std::size_t>(s.stages),
                                           std::vector<Weights>(kColumns, Weights{}));
  auto fill = [&](int stage, double begin, double end, char mark) {
    for (int c = std::max(0, static_cast<int>(begin / cell)); c < kColumns && c * cell < end; ++c) {
      const double part = std::min(end, (c + 1) * cell) - std::max(begin, c * cell);
      filled[static_cast<std::size_t>(stage)][static_cast<std::size_t>(c)]
            [static_cast<unsigned char>(mark)] += std::max(0.0, part);
    }
  };
  for (const StageEvent& e : s.events) fill(e.stage, e.begin, e.end, mark_of(e));
  const double exposed = rest_of(s, StepRest::exposed_communication);
  const double optimizer = rest_of(s, StepRest::optimizer);
  for (int stage = 0; stage < s.stages; ++stage) {
    fill(stage, s.passes_end, s.passes_end + exposed, 'x');
    fill(stage, s.passes_end + exposed, s.passes_end + exposed + optimizer, 'o');
  }
  std::vector<std::string> rows;
  for (const auto& row : filled) {
    std::string line;
    for (const Weights& w : row) {
      double sum = 0;
      std::size_t most = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        sum += w[i];
        if (w[i] > w[most]) most = i;
      }
      line += sum * 2 < cell ? '.' : static_cast<char>(most);
    }
    rows.push_back(std::move(line));
  }
  return rows;
}

}  // namespace

void put_timeline(Page& page, const StepBreakdown& s) {
  if (s.part != StepPart::train_step || s.seconds <= 0) return;
  Language l = page.language();
  page.heading(say(PresentMessage::timeline_heading, l,
                   {std::to_string(s.micro_batches), std::to_string(s.stages)}));
  NumberColumn time("s");
  time.see(s.seconds);
  Table t({{std::string(label(PresentMessage::col_part, l)), false},
           {time.header(label(PresentMessage::col_time, l)), true},
           {std::string(label(PresentMessage::col_share, l)), true}});
  auto row = [&](PresentMessage what, double seconds) {
    if (seconds < 0.0005 * s.seconds) return;
    t.row({std::string(label(what, l)), time.cell(seconds),
           significant(100 * seconds / s.seconds, 3)});
  };
  const double inside = s.tensor + s.expert + s.context;
  double left = s.seconds - s.forward - s.backward;
  for (const RestLine& r : s.rest)
    if (r.what != StepRest::host_floor && r.what != StepRest::beside_products &&
        r.what != StepRest::other)
      left -= r.seconds;
  row(PresentMessage::part_forward, s.forward);
  row(PresentMessage::part_backward, s.backward);
  row(PresentMessage::part_tensor, s.tensor);
  row(PresentMessage::part_expert, s.expert);
  row(PresentMessage::part_context, s.context);
  row(PresentMessage::rest_recompute, rest_of(s, StepRest::recompute));
  row(PresentMessage::rest_sends, rest_of(s, StepRest::sends));
  row(PresentMessage::part_data, rest_of(s, StepRest::exposed_communication));
  row(PresentMessage::rest_slowed, rest_of(s, StepRest::slowed));
  row(PresentMessage::rest_bubble, rest_of(s, StepRest::bubble));
  row(PresentMessage::rest_optimizer, rest_of(s, StepRest::optimizer));
  row(PresentMessage::rest_step_overhead, rest_of(s, StepRest::step_overhead));
  row(PresentMessage::rest_offloaded, rest_of(s, StepRest::offloaded));
  row(PresentMessage::rest_loader, rest_of(s, StepRest::loader));
  row(PresentMessage::rest_other, std::max(0.0, left));
  page.table(t, 2);
  if (inside > 0.0005 * s.seconds)
    page.paragraph(say(PresentMessage::timeline_inside, l, {}), Tone::faint, 2, 2);
  if (s.events.empty() || s.stages > kMostStages) return;
  const std::vector<std::string> rows = drawn(s);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string name = std::to_string(i);
    name.insert(0, 3 - std::min<std::size_t>(3, name.size()), ' ');
    page.raw("  " + name + " |" + rows[i] + "|\n");
  }
  page.paragraph(say(PresentMessage::timeline_legend, l, {}), Tone::faint, 2, 2);
}

JsonNode timeline_json(const StepBreakdown& s) {
  constexpr const char* kKinds[] = {"forward", "backward", "weight"};
  JsonNode events = JsonNode::array();
  for (const StageEvent& e : s.events)
    events.add(JsonNode::object()
                   .set("stage", e.stage)
                   .set("chunk", e.chunk)
                   .set("micro_batch", e.micro_batch)
                   .set("pass", kKinds[static_cast<std::size_t>(e.kind)])
                   .set("begin", e.begin)
                   .set("end", e.end));
  return JsonNode::object()
      .set("stages", s.stages)
      .set("virtual_stages", s.virtual_stages)
      .set("micro_batches", s.micro_batches)
      .set("passes_end", s.passes_end)
      .set("forward", s.forward)
      .set("backward", s.backward)
      .set("tensor_communication", s.tensor)
      .set("expert_communication", s.expert)
      .set("context_communication", s.context)
      .set("passes", events);
}

}  // namespace trigon
