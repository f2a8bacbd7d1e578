// catalog gpus|models|networks|systems|prices [NAME].

#include <algorithm>

#include "conditions.hpp"
#include "hardware/listing.hpp"
#include "hardware/names.hpp"
#include "present/app_messages.hpp"
#include "present/catalog_report.hpp"
#include "session.hpp"

namespace trigon {
namespace {

struct Listing {
  std::string_view name, kind;
  std::vector<std::string> columns;  // facts shown in a table
};
const std::vector<Listing>& listings() {
  static const std::vector<Listing> all = {
      {"gpus", "accelerator", {}},
      {"models",
       "model",
       {"architecture", "layers", "hidden", "heads", "kv_heads", "vocabulary", "context_tokens"}},
      {"networks", "network", {"family", "image", "parameters", "aliases"}},
      {"systems",
       "system",
       {"accelerator", "count", "intra.one_way_gb_per_s",
        "inter.one_way_gb_per_s_per_accelerator"}},
      {"prices", "", {}}};
  return all;
}

Output in_frame(const Call& call, const Catalogues& all, JsonNode results) {
  Asked asked = asked_of(call);
  asked.data_version = data_version(all.facts);
  return {write_json(envelope(asked, nullptr, {}, std::move(results))), exit_done};
}

Result<Output> one_sheet(const Call& call, const Catalogues& all, const FactSheet& sheet) {
  if (call.json) return in_frame(call, all, sheet_json(sheet));
  return Output{sheet_text(sheet, call.style)};
}

// The sheet that a name of this listing means.
Result<const FactSheet*> find_sheet(const Catalogues& all, const Listing& list,
                                    const std::string& name) {
  if (list.name == "models") return all.models.find_sheet(name);
  if (list.name == "systems") {
    auto found = all.hardware.find_system(name);
    if (!found) return tl::unexpected(found.error());
    return (*found)->sheet;
  }
  auto found = all.hardware.accelerators.find(name);
  if (!found) return tl::unexpected(found.error());
  return (*found)->sheet;
}

Result<Output> run_sheets(const Call& call, const Catalogues& all, const Listing& list) {
  // Networks are variants inside the sheets of their families.
  std::vector<FactSheet> variants;
  if (list.name == "networks") {
    if (call.line.arguments.size() > 1) {
      const std::string& name = call.line.arguments[1];
      const NetworkCatalog::Entry* entry = all.networks.entry(name);
      if (entry) return one_sheet(call, all, variant_sheet(*entry));
      return tl::unexpected(all.networks.find(name, {}, "NAME").error());
    }
    for (const NetworkCatalog::Entry& e : all.networks.all()) variants.push_back(variant_sheet(e));
  }
  if (call.line.arguments.size() > 1) {
    auto sheet = find_sheet(all, list, call.line.arguments[1]);
    if (!sheet) return tl::unexpected(sheet.error());
    return one_sheet(call, all, **sheet);
  }
  std::vector<const FactSheet*> sheets;
  if (list.name == "networks")
    for (const FactSheet& v : variants) sheets.push_back(&v);
  else
    sheets = all.facts.of_kind(list.kind);
  // Processors are listed where the kind is asked for ("kind=cpu").
  if (list.name == "gpus") {
    const Setting* asked = call.settings.find("where");
    if (!asked || asked->text.find("kind") == std::string::npos)
      sheets.erase(std::remove_if(sheets.begin(), sheets.end(),
                                  [](const FactSheet* s) {
                                    return s->text("device_kind").value_or("") == "cpu";
                                  }),
                   sheets.end());
  }
  std::vector<const FactSheet*> shown = sheets;
  const Setting* where = call.settings.find("where");
  if (where && list.name == "gpus") {
    std::vector<Condition> conditions;
    for (const std::string& text : split_conditions(where->text)) {
      auto c = parse_condition(text, where->origin);
      if (!c) return tl::unexpected(c.error());
      conditions.push_back(std::move(*c));
    }
    shown.clear();
    for (const Accelerator* a : select(all.hardware.accelerators, conditions))
      shown.push_back(a->sheet);
  } else if (where) {
    auto conditions = parse_conditions(where->text, where->origin);
    if (!conditions) return tl::unexpected(conditions.error());
    auto kept = matching(sheets, *conditions, where->origin);
    if (!kept) return tl::unexpected(kept.error());
    shown = std::move(*kept);
  }
  int code = shown.empty() ? exit_no : exit_done;
  if (call.json) {
    JsonNode rows = JsonNode::array();
    for (const FactSheet* s : shown) rows.add(sheet_json(*s));
    JsonNode results = JsonNode::object();
    results.set(list.name, rows).set("total", sheets.size());
    Output out = in_frame(call, all, results);
    out.exit_code = code;
    return out;
  }
  if (list.name != "gpus")
    return Output{sheets_text(shown, sheets.size(), list.columns, call.style), code};
  std::vector<const Accelerator*> cards;
  for (const Accelerator& a : all.hardware.accelerators.all())
    if (std::find(shown.begin(), shown.end(), a.sheet) != shown.end()) cards.push_back(&a);
  return Output{accelerators_text(cards, sheets.size(), call.style), code};
}

CardPrices prices_of(const Catalogues& all, const Accelerator& a, const std::string& as_of) {
  return {&a, all.prices.rent(a, PriceKind::on_demand, as_of),
          all.prices.rent(a, PriceKind::spot, as_of), all.prices.buy(a, as_of)};
}

Result<Output> run_prices(const Call& call, const Catalogues& all) {
  const Setting* date = call.settings.find("as-of");
  std::string as_of = date ? date->text : all.prices.snapshot_date();
  JsonNode results = JsonNode::object();
  results.set("as_of", as_of);
  if (call.line.arguments.size() > 1) {
    auto card = all.hardware.accelerators.find(call.line.arguments[1]);
    if (!card) return tl::unexpected(card.error());
    std::vector<const PriceRow*> offers;
    for (const PriceRow& r : all.prices.rows())
      if (r.names((*card)->id)) offers.push_back(&r);
    CardPrices prices = prices_of(all, **card, as_of);
    if (!call.json) return Output{offers_text(prices, offers, call.style)};
    results.set("prices", prices_json({prices})).set("offers", offers_json(offers));
    return in_frame(call, all, results);
  }
  std::vector<CardPrices> cards;
  for (const Accelerator& a : all.hardware.accelerators.all()) {
    CardPrices p = prices_of(all, a, as_of);
    if (p.rent || p.spot || p.buy) cards.push_back(std::move(p));
  }
  if (!call.json) return Output{prices_text(cards, as_of, call.style)};
  results.set("prices", prices_json(cards));
  return in_frame(call, all, results);
}

}  // namespace

Result<Output> run_catalog(Call& call) {
  if (auto good = expect_arguments(call, 2); !good) return tl::unexpected(good.error());
  const std::vector<std::string>& words = call.line.arguments;
  if (words.empty())
    return fail(ErrorCode::bad_argument,
                message(AppMessage::missing_argument, "catalog",
                        "gpus, models, networks, systems or prices"),
                "", message(AppMessage::try_command, "trigon catalog gpus"));
  auto list = std::find_if(listings().begin(), listings().end(),
                           [&](const Listing& l) { return l.name == words[0]; });
  if (list == listings().end()) {
    std::vector<std::string_view> names;
    for (const Listing& l : listings()) names.push_back(l.name);
    auto near = nearest_name(words[0], names);
    return fail(
        ErrorCode::unknown_name, message(BaseMessage::unknown_name, "catalogue", words[0]), "",
        near ? message(BaseMessage::nearest_name, *near)
             : message(BaseMessage::choose_one_of, "gpus, models, networks, systems, prices"));
  }
  auto all = load_catalogues(call);
  if (!all) return tl::unexpected(all.error());
  return list->name == "prices" ? run_prices(call, **all) : run_sheets(call, **all, *list);
}

}  // namespace trigon
