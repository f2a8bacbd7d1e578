#include "combinations.hpp"

#include <algorithm>

#include "present/app_messages.hpp"

namespace trigon {
namespace {

enum Kinds : std::uint8_t {
  serves = 1,
  batches = 2,
  trains = 4,
  tunes = 8,
  training = trains | tunes,
  serving = serves | batches
};

struct Rule {
  std::string_view flag;
  std::uint8_t kinds;
  std::string_view instead;  // what says the like for other kinds; empty: nothing does
};
constexpr Rule kRules[] = {
    {"zero", training, ""},
    {"cp", training, ""},
    {"schedule", training, ""},
    {"cp-exchange", training, ""},
    {"expert-capacity", training, ""},
    {"zero-groups", training, ""},
    {"last-stage-layers", training, ""},
    {"loader-rate", training, ""},
    {"recompute", training, ""},
    {"sequence-parallel", training, ""},
    {"global-batch", training, "--concurrency"},
    {"sequence", training, "--context"},
    {"samples", training, "--requests"},
    {"epochs", training, ""},
    {"tokens", training, ""},
    {"method", tunes, ""},
    {"adapt", tunes, ""},
    {"rank", tunes, ""},
    {"kv", serving, ""},
    {"memory-fraction", serving, ""},
    {"deadline", batches | trains | tunes, ""},
    {"rate", serves, ""},
    {"users", serves, ""},
    {"think-time", serves, ""},
    {"input-tokens", serving, "--sequence"},
    {"output-tokens", serving, "--sequence"},
    {"context", serving, "--sequence"},
    {"ttft", serves, ""},
    {"tpot", serves, ""},
    {"e2e", serves, ""},
    {"slo", serves, ""},
};

std::uint8_t bit_of(JobKind k) {
  switch (k) {
    case JobKind::serve:
      return serves;
    case JobKind::batch:
      return batches;
    case JobKind::train:
      return trains;
    case JobKind::finetune:
      return tunes;
  }
  return serves;
}

std::string_view name_of(std::uint8_t kind) {
  return kind == serves    ? "serve"
         : kind == batches ? "batch"
         : kind == trains  ? "train"
                           : "finetune";
}

// "train or finetune".
std::string names_of(std::uint8_t kinds) {
  std::string out;
  for (std::uint8_t k : {serves, batches, trains, tunes})
    if (kinds & k) out += (out.empty() ? "" : ", ") + std::string(name_of(k));
  return out;
}

}  // namespace

Result<void> check_combinations(const CommandLine& line, JobKind kind) {
  const std::uint8_t asked = bit_of(kind);
  for (const CommandLine::Given& g : line.given) {
    auto rule = std::find_if(std::begin(kRules), std::end(kRules),
                             [&](const Rule& r) { return r.flag == g.flag->name; });
    if (rule == std::end(kRules) || (rule->kinds & asked) || g.text == "false") continue;
    return fail(ErrorCode::bad_argument,
                message(AppMessage::flag_of_other_task, g.as_written, names_of(rule->kinds),
                        name_of(asked)),
                "--task",
                rule->instead.empty() ? message(AppMessage::other_task, names_of(rule->kinds))
                                      : message(AppMessage::other_flag_or_task, rule->instead,
                                                names_of(rule->kinds)));
  }
  return {};
}

}  // namespace trigon
