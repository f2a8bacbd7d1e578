// What a row of fine-tuning says of its adapters, its recipe and its optimizer.

#include <algorithm>

#include "evidence/messages.hpp"
#include "evidence/resolve.hpp"

namespace trigon {
namespace {

// "input+delta": see AdapterForm.
std::optional<AdapterForm> form_of(std::string_view keeps) {
  AdapterForm f;
  f.input = false;
  while (!keeps.empty()) {
    const std::size_t end = std::min(keeps.find('+'), keeps.size());
    const std::string_view word = keeps.substr(0, end);
    keeps.remove_prefix(std::min(end + 1, keeps.size()));
    if (word == "input")
      f.input = true;
    else if (word == "delta")
      f.delta = true;
    else if (word == "output")
      f.output = true;
    else if (word != "none")
      return std::nullopt;
  }
  return f;
}

}  // namespace

std::optional<Refusal> take_adapters(const Row& row, Case& c) {
  JobRequest& j = c.question.job;
  PlanRequest& p = c.question.plan;
  if (const auto recipe = row.text("recipe"); !recipe.empty()) {
    p.recipe = recipe_of(recipe);
    if (!p.recipe) return Refusal{RefusalReason::bad_value, "recipe"};
  }
  if (const auto optimizer = row.text("optimizer"); !optimizer.empty()) {
    p.optimizer = optimizer_of(optimizer);
    if (!p.optimizer) return Refusal{RefusalReason::method_not_supported, std::string(optimizer)};
  }
  if (j.kind != JobKind::finetune) return std::nullopt;
  j.rank = row.whole("lora_rank");
  const std::string_view keeps = row.text("keeps"), method = row.text("adapter");
  if (!method.empty() && keeps.empty())
    return Refusal{RefusalReason::method_not_supported, std::string(method)};
  AdapterForm form;
  if (!keeps.empty()) {
    const auto read = form_of(keeps);
    if (!read) return Refusal{RefusalReason::bad_value, "keeps"};
    form = *read;
  }
  // Counted by the framework itself; low-rank ones follow from their rank where it is stated.
  if (!j.rank || !method.empty()) form.parameters = row.number("trainable").value_or(0);
  form.ends = row.flag("ends");
  j.form = form;
  if (row.flag("dora")) j.dora = true;
  // litgpt adapts queries and values unless its flags say more.
  if (const std::string_view targets = row.text("lora_targets"); !targets.empty()) {
    const auto read = adapter_targets(targets);
    if (!read) return Refusal{RefusalReason::bad_value, "lora_targets"};
    j.targets = *read;
  } else if (row.text("engine") == "litgpt") {
    j.targets = kQueryValue;
  }
  return std::nullopt;
}

}  // namespace trigon
