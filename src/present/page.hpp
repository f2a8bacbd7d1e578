#pragma once
// An answer as text, built from top to bottom, and the parts that several verbs share.

#include <string>
#include <string_view>
#include <vector>

#include "present/job_text.hpp"
#include "present/table.hpp"

namespace trigon {

class Page {
 public:
  explicit Page(const TextStyle& style) : style_(style) {}
  const TextStyle& style() const { return style_; }
  Language language() const { return style_.language; }

  // A paragraph, wrapped; following lines are indented by `hang`.
  void paragraph(std::string_view text, Tone tone = Tone::plain, int indent = 0, int hang = 0);
  void blank();
  // A heading with an empty line before it.
  void heading(std::string_view text);
  void table(const Table& t, int indent = 0, int top = 0);
  void raw(std::string_view text) { out_ += text; }
  std::string finish() { return std::move(out_); }

 private:
  const TextStyle& style_;
  std::string out_;
};

// A fragment as a sentence of its own: a capital at its start, a full stop at its end.
std::string sentence(std::string text);

// A message made of texts only.
std::string say(PresentMessage id, Language language, std::initializer_list<std::string> args);

// The metric's label for this job: latencies at a percentile are named by that of the limit, the
// total of a service is that of a month.
std::string label_for(Metric m, const Job& job, Language language);
// "  time to first token   0.21 s (0.18 to 0.25)   calibrated": one line for each that is known.
void put_metrics(Page& page, const PlanReport& r, const std::vector<Metric>& metrics,
                 const Job& job);
// Weights, KV cache ... of the fullest rank, with shares.
void put_memory(Page& page, const PlanReport& r, bool training);
void put_assumptions(Page& page, const std::vector<Assumption>& assumptions);
void put_warnings(Page& page, const std::vector<Message>& warnings);
void put_messages(Page& page, PresentMessage heading, const std::vector<Message>& messages);
// Where the time of each step goes: operators, the longest first, and what is no operator's. With
// style.explain_term only the steps of that name ("operators" for all). Whether any was asked for.
bool put_steps(Page& page, const PlanReport& r, const Job& job);
// A training step as a timeline: its parts, and the passes of each pipeline stage in 80 columns.
void put_timeline(Page& page, const StepBreakdown& s);
JsonNode timeline_json(const StepBreakdown& s);
JsonNode steps_json(const std::vector<StepBreakdown>& steps);
// The steps whose formula is called like style.explain_term, or all.
void put_derivation(Page& page, const Derivation& d);

// The expression with its symbols replaced by numbers: "2 * layers" -> "2 * 32".
std::string substituted(const DerivationStep& step);

}  // namespace trigon
