// inspect FILE: a model file, a folder, or a model of the catalogue.

#include "item.hpp"
#include "library/library.hpp"
#include "present/app_messages.hpp"
#include "present/inspect_report.hpp"
#include "session.hpp"

namespace trigon {

Result<Output> run_inspect(Call& call) {
  if (auto good = expect_arguments(call, 1); !good) return tl::unexpected(good.error());
  if (call.line.arguments.empty())
    return fail(ErrorCode::bad_argument, message(AppMessage::missing_model, "inspect"), "",
                message(AppMessage::try_command, "trigon inspect llama-3.1-8b"));
  auto all = load_catalogues(call);
  if (!all) return tl::unexpected(all.error());
  auto item = read_item(call.settings);
  if (!item) return tl::unexpected(item.error());
  auto model = open_model(call.line.arguments[0], (*all)->models, (*all)->networks, *item);
  if (!model) return tl::unexpected(model.error());
  std::optional<Format> kv;
  if (const Setting* s = call.settings.find("kv")) kv = format_by_name(s->text);
  ModelDescription description = describe(*model, kv);
  if (!call.json) return Output{inspect_text(description, call.style)};
  Asked asked = asked_of(call);
  asked.model = model->id;
  asked.data_version = data_version((*all)->facts);
  return Output{write_json(inspect_json(description, asked))};
}

}  // namespace trigon
