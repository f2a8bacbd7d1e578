// check [LOG|-]: why a job ran out of memory, from what it printed.

#include <unistd.h>

#include <cstdio>

#include "base/small_file.hpp"
#include "present/app_messages.hpp"
#include "present/check_report.hpp"
#include "session.hpp"

namespace trigon {
namespace {

Result<std::string> read_input() {
  std::string out;
  char part[65536];
  std::size_t n = 0;
  while ((n = std::fread(part, 1, sizeof part, stdin)) > 0) {
    out.append(part, n);
    if (out.size() > kMostOfSmallFile)
      return fail(ErrorCode::bad_argument,
                  message(AppMessage::log_too_long, bytes(static_cast<double>(kMostOfSmallFile))),
                  "-", message(AppMessage::log_shorten));
  }
  return out;
}

}  // namespace

Result<Output> run_check(Call& call) {
  if (auto good = expect_arguments(call, 1); !good) return tl::unexpected(good.error());
  const std::string log = call.line.arguments.empty() ? "-" : call.line.arguments[0];
  if (call.line.arguments.empty() && isatty(STDIN_FILENO))
    return fail(ErrorCode::bad_argument, message(AppMessage::missing_log), "",
                message(AppMessage::try_command, "trigon check server.log"));
  const Setting *model = call.settings.find("model"), *on = call.settings.find("on");
  if (!model != !on)
    return fail(ErrorCode::bad_argument, message(AppMessage::model_without_hardware),
                model ? model->origin : on->origin,
                message(AppMessage::try_command, call.line.verb->examples.back()));
  auto text = log == "-" ? read_input() : read_small_file(log);
  if (!text) return tl::unexpected(text.error());
  auto answer = check_log(*text, log);
  if (!answer) return tl::unexpected(answer.error());
  Asked asked = asked_of(call);
  if (model) {
    auto s = open_session(call, model->text);
    if (!s) return tl::unexpected(s.error());
    auto cluster = hardware_of(*s, on->text, on->origin);
    if (!cluster) return tl::unexpected(cluster.error());
    answer->assumptions = take_from_log(answer->report, *s->all, s->question);
    auto prediction = predict(*s->all, s->question, *cluster, answer->report);
    if (!prediction) return tl::unexpected(prediction.error());
    answer->assumptions.insert(answer->assumptions.end(), prediction->now.assumptions.begin(),
                               prediction->now.assumptions.end());
    answer->prediction = std::move(*prediction);
    s->asked.hardware = {on->text};
    // The model lives in the session.
    return Output{call.json ? write_json(check_json(*answer, s->asked))
                            : check_text(*answer, s->asked, call.style),
                  is_yes(*answer) ? exit_done : exit_no};
  }
  if (call.json) asked.data_version = data_version_of(call);
  return Output{
      call.json ? write_json(check_json(*answer, asked)) : check_text(*answer, asked, call.style),
      is_yes(*answer) ? exit_done : exit_no};
}

}  // namespace trigon
