#pragma once
// One call of the program: what was written, what is set, how to answer.

#include <string>

#include "present/job_text.hpp"
#include "settings.hpp"

namespace trigon {

// Exit codes of UX: what scripts rely on.
enum ExitCode : int {
  exit_done = 0,
  exit_no = 1,
  exit_bad_input = 2,
  exit_bug = 70,
  exit_interrupted = 130
};

struct Output {
  std::string text;
  int exit_code = exit_done;
};

struct Call {
  CommandLine line;
  Settings settings;
  TextStyle style;
  bool json = false;
  std::vector<Message> warnings;  // for stderr and the JSON answer
};

// Carries out the verb. Nothing is printed: the text is the whole standard output.
Result<Output> run(Call& call);

}  // namespace trigon
