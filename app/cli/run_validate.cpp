// validate FILE...: measured rows against predictions.

#include <filesystem>

#include "base/units.hpp"
#include "evidence/catalogue_names.hpp"
#include "evidence/thresholds.hpp"
#include "present/app_messages.hpp"
#include "present/validate_report.hpp"
#include "session.hpp"
#include "write_file.hpp"

namespace trigon {
Result<Output> run_validate(Call& call) {
  if (call.line.arguments.empty())
    return fail(ErrorCode::bad_argument, message(AppMessage::missing_argument, "validate", "FILE"),
                "", message(AppMessage::try_command, call.line.verb->examples.front()));
  std::vector<CsvTable> tables;
  for (const std::string& path : call.line.arguments) {
    auto table = read_csv(path);
    if (!table) return tl::unexpected(table.error());
    tables.push_back(std::move(*table));
  }
  // The file of results must not be one of the measurements.
  if (const Setting* path = call.settings.find("per-row"))
    for (const std::string& file : call.line.arguments) {
      std::error_code none;
      if (std::filesystem::equivalent(path->text, file, none))
        return fail(ErrorCode::bad_argument, message(AppMessage::output_is_input, path->text),
                    path->origin);
    }
  auto all = load_catalogues(call);
  if (!all) return tl::unexpected(all.error());
  ValidateOptions options;
  if (const Setting* g = call.settings.find("group-by"))
    for (std::string_view column : split_words(g->text, ',')) options.group_by.emplace_back(column);
  if (const Setting* t = call.settings.find("threads")) {
    auto n = parse_whole(t->text, t->origin);
    if (!n) return tl::unexpected(n.error());
    options.threads = static_cast<int>(*n);
  }
  const Catalogues& facts = **all;
  auto predict = [&facts](const Question& q, const Cluster& c, bool tuned) {
    return tuned ? estimate_best(facts, q, c) : estimate(facts, q, c);
  };
  auto answer = validate(tables, row_names_unseen(facts), predict, options);
  if (!answer) return tl::unexpected(answer.error());
  std::optional<std::vector<Message>> broken;
  if (call.settings.on("check")) {
    std::vector<Threshold> limits;
    for (const FactSheet* sheet : facts.facts.of_kind("thresholds")) {
      auto read = read_thresholds(*sheet);
      if (!read) return tl::unexpected(read.error());
      limits.insert(limits.end(), read->begin(), read->end());
    }
    // Nothing to hold is no success.
    if (limits.empty())
      return fail(ErrorCode::missing_fact,
                  message(BaseMessage::missing_fact, "thresholds", "validate"), "--check");
    broken = broken_thresholds(limits, *answer);
  }
  if (const Setting* path = call.settings.find("per-row"))
    if (auto good = write_file(path->text, validate_rows_csv(*answer), path->origin); !good)
      return tl::unexpected(good.error());
  const std::vector<Message>* list = broken ? &*broken : nullptr;
  int code = broken && !broken->empty() ? exit_no : exit_done;
  if (!call.json) return Output{validate_text(*answer, list, call.style), code};
  Asked asked = asked_of(call);
  asked.data_version = data_version(facts.facts);
  return Output{write_json(validate_json(*answer, list, asked)), code};
}

}  // namespace trigon
