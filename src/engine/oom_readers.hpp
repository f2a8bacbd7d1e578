#pragma once
// The readers of each tool's messages. Each is asked about one line; where the line is its own, it
// fills an event from the line and a few lines below it.

#include <optional>
#include <string>

#include "engine/oom_report.hpp"

namespace trigon {

// What stood above: figures of earlier lines, the stage a loader had reached.
struct OomContext {
  OomFigures figures;
  std::optional<OomComponent> llama_stage;  // what llama.cpp was setting up
  std::int64_t llama_stage_line = 0;
  std::optional<OomTool> engine;
  std::optional<bool> expandable_segments;
};

// The line with the error, joined with the lines below it that continue it.
struct OomPassage {
  std::string_view line;  // as it stands
  std::string text;       // joined with the following lines by blanks
  std::int64_t number = 0;
};

std::optional<OomEvent> read_torch_oom(const OomPassage& p);
std::optional<OomEvent> read_serving_oom(const OomPassage& p);
std::optional<OomEvent> read_llama_oom(const OomPassage& p, const OomContext& above);
std::optional<OomEvent> read_host_oom(const OomPassage& p);

// Figures and stages of lines that are no errors: "Model loading took", "load_tensors: ...".
void see_serving_line(std::string_view line, std::int64_t number, OomContext& context);
void see_llama_line(std::string_view line, std::int64_t number, OomContext& context);

}  // namespace trigon
