#include "what_if.hpp"

#include <algorithm>

#include "conditions.hpp"
#include "hardware/change.hpp"
#include "hardware/names.hpp"
#include "item.hpp"
#include "library/library.hpp"
#include "model/gguf_file_type.hpp"

namespace trigon {
namespace {

constexpr std::string_view kSparsity = "sparsity";

// Flags of the job and the plan change like facts do: "quant=fp8", "concurrency=64".
bool can_change(const Flag& f) {
  return (f.verbs & verb_estimate) != 0 && f.kind != ValueKind::shapes &&
         (f.group == AppMessage::group_job || f.group == AppMessage::group_limits ||
          f.group == AppMessage::group_plan);
}

tl::unexpected<Error> unknown_change(std::string_view key, std::string_view where) {
  std::vector<std::string_view> names = hardware_keys();
  names.push_back(kSparsity);
  for (const Flag& f : flags())
    if (can_change(f))
      for (std::string_view n : names_of(f)) names.push_back(n);
  auto near = nearest_name(key, names);
  return fail(
      ErrorCode::unknown_name, message(BaseMessage::unknown_name, "change", key),
      std::string(where),
      near ? message(BaseMessage::nearest_name, *near) : message(AppMessage::what_if_examples));
}

struct Changes {
  std::vector<HardwareChange> hardware;
  Settings settings;
  bool sparse = false, job = false, item = false, quant = false;
};

// How much comes in is said in one way only.
void replace_others(Settings& s, std::string_view name) {
  const std::initializer_list<std::string_view> loads = {"rate", "concurrency", "users"};
  if (std::find(loads.begin(), loads.end(), name) == loads.end()) return;
  for (std::string_view other : loads)
    if (other != name) s.drop(other);
}

Result<void> take(Changes& c, std::string_view part, const std::string& where) {
  const auto equals = part.find('=');
  const std::string key(part.substr(0, equals));
  const std::string value(equals == part.npos ? std::string_view() : part.substr(equals + 1));
  if (key.empty() || value.empty())
    return fail(ErrorCode::bad_argument, message(AppMessage::bad_change, part), where,
                message(AppMessage::what_if_examples));
  if (key == kSparsity) {
    if (value != "2:4")
      return fail(ErrorCode::bad_argument, message(AppMessage::bad_choice, value), where,
                  message(BaseMessage::choose_one_of, "2:4"));
    c.sparse = true;
    return {};
  }
  auto hardware = parse_hardware_change(key, value, where);
  if (hardware) {
    c.hardware.push_back(*hardware);
    return {};
  }
  if (hardware.error().what.id != message_id(BaseMessage::unknown_key))
    return tl::unexpected(hardware.error());
  const Flag* f = find_flag(key);
  if (!f || !can_change(*f)) return unknown_change(key, where);
  if (auto good = c.settings.put(*f, value, where); !good) return good;
  replace_others(c.settings, f->name);
  c.job = true;
  c.item = c.item || f->only_here;
  c.quant = c.quant || f->name == "quant";
  return {};
}

// The model again, where a change is of its items or of what its file mixes.
Result<std::shared_ptr<const Model>> model_of(const Call& call, const Session& s,
                                              const Changes& c) {
  std::optional<Model> changed;
  if (c.item) {
    auto item = read_item(c.settings);
    if (!item) return tl::unexpected(item.error());
    auto opened = open_model(call.line.arguments.front(), s.all->models, s.all->networks, *item);
    if (!opened) return tl::unexpected(opened.error());
    changed = std::move(*opened);
  }
  if (const Setting* quant = c.settings.find("quant"); c.quant && !format_by_name(quant->text))
    if (auto mixed = in_gguf_file_type(changed ? *changed : *s.model, quant->text))
      changed = std::move(*mixed);
  if (!changed) return std::shared_ptr<const Model>();
  return std::make_shared<const Model>(std::move(*changed));
}

Result<WhatIf> one_case(const Call& call, const Session& s, const Cluster& cluster,
                        const std::string& text, bool side_by_side) {
  WhatIf out;
  out.changes = text;
  out.question = s.question;
  out.question.explain = false;
  out.cluster = cluster;
  const std::string where = "--what-if " + text;
  Changes c;
  c.settings = call.settings;
  for (const std::string& part : split_conditions(text))
    if (auto good = take(c, part, where); !good) return tl::unexpected(good.error());
  if (c.job) {
    auto asking = read_question(c.settings);
    if (!asking) return tl::unexpected(asking.error());
    out.question.job = asking->job;
    out.question.plan = asking->plan;
    out.question.engine = asking->engine;
    auto model = model_of(call, s, c);
    if (!model) return tl::unexpected(model.error());
    out.model = std::move(*model);
    if (out.model) out.question.model = out.model.get();
    if (const Setting* on = c.settings.find("on"); on && on->origin == where) {
      auto other = hardware_of(s, on->text, where);
      if (!other) return tl::unexpected(other.error());
      out.cluster = std::move(*other);
    }
  }
  if (c.sparse)
    if (auto good = make_sparse(out.question.plan, *out.question.model, where); !good)
      return tl::unexpected(good.error());
  if (!c.hardware.empty()) {
    auto hardware = changed(out.cluster, c.hardware, s.all->hardware, where, side_by_side);
    if (!hardware) return tl::unexpected(hardware.error());
    out.cluster = std::move(hardware->cluster);
    out.accelerator = std::move(hardware->accelerator);
  }
  return out;
}

}  // namespace

Result<std::vector<WhatIf>> what_if_cases(const Call& call, const Session& s,
                                          const Cluster& cluster, bool side_by_side) {
  std::vector<WhatIf> out;
  const Setting* asked = call.settings.find("what-if");
  if (!asked) return out;
  for (std::string_view text : split_words(asked->text, '\n')) {
    auto one = one_case(call, s, cluster, std::string(text), side_by_side);
    if (!one) return tl::unexpected(one.error());
    out.push_back(std::move(*one));
  }
  return out;
}

}  // namespace trigon
