#pragma once
// Python tracebacks: which part of a job asked for the memory.

#include <deque>
#include <string>
#include <string_view>

#include "engine/oom_report.hpp"

namespace trigon {

struct TraceFrame {
  std::int64_t line = 0;  // in the log
  std::string path, function, source;
};

// The frames of the traceback that is being read.
class Traceback {
 public:
  // Takes a line of the log if it belongs to a traceback.
  void see(std::string_view line, std::int64_t number);
  // Frames that stand at most this many lines above `number`.
  const std::deque<TraceFrame>& frames(std::int64_t number);
  // The line below a frame holds its statement.
  bool wants_source() const { return !frames_.empty() && frames_.back().source.empty(); }

 private:
  std::deque<TraceFrame> frames_;  // outermost first
};

// What the frames say of an allocation.
struct TraceVerdict {
  OomComponent component = OomComponent::unknown;
  std::optional<OomTool> tool;
  bool training = false;
  std::optional<OomEvidence> evidence;  // the frame that decided
};
TraceVerdict judge(const std::deque<TraceFrame>& frames);

}  // namespace trigon
