#include "model/model_catalog.hpp"

#include <algorithm>

#include "hardware/names.hpp"
#include "model/messages.hpp"

namespace trigon {

Result<ModelCatalog> ModelCatalog::from(const FactStore& store) {
  ModelCatalog c;
  c.sheets_ = store.of_kind("model");
  for (std::size_t i = 0; i < c.sheets_.size(); ++i) {
    c.names_.push_back({normalised_name(c.sheets_[i]->id), i});
    for (const std::string& alias : c.sheets_[i]->texts("aliases"))
      c.names_.push_back({normalised_name(alias), i});
  }
  std::sort(c.names_.begin(), c.names_.end(), [](const Name& a, const Name& b) {
    return a.key != b.key ? a.key < b.key : a.sheet < b.sheet;
  });
  for (std::size_t i = 1; i < c.names_.size(); ++i)
    if (c.names_[i].key == c.names_[i - 1].key && c.names_[i].sheet != c.names_[i - 1].sheet)
      return fail(ErrorCode::malformed,
                  message(BaseMessage::ambiguous_name, c.names_[i].key, "models"),
                  c.sheets_[c.names_[i].sheet]->where);
  for (const FactSheet* sheet : store.of_kind("model-names"))
    for (const FactGroup& g : sheet->groups) {
      const Fact* name = find_fact(g.facts, "name");
      const Fact* list = find_fact(g.facts, "candidates");
      auto text = name ? std::get_if<std::string>(&name->value) : nullptr;
      auto candidates = list ? std::get_if<std::vector<std::string>>(&list->value) : nullptr;
      if (!text || !candidates)
        return fail(ErrorCode::malformed, message(BaseMessage::missing_key, "candidates"),
                    sheet->where);
      c.ambiguous_.push_back({normalised_name(*text), *candidates});
    }
  return c;
}

const FactSheet* ModelCatalog::by_id(std::string_view id) const {
  auto it = std::lower_bound(
      sheets_.begin(), sheets_.end(), id,
      [](const FactSheet* s, std::string_view key) { return std::string_view(s->id) < key; });
  return it != sheets_.end() && (*it)->id == id ? *it : nullptr;
}

Result<std::vector<const FactSheet*>> ModelCatalog::resolve_all(std::string_view name,
                                                                std::string_view where) const {
  if (const FactSheet* s = by_id(name)) return std::vector<const FactSheet*>{s};
  const std::string key = normalised_name(name);
  auto it = std::lower_bound(names_.begin(), names_.end(), key,
                             [](const Name& n, const std::string& k) { return n.key < k; });
  if (it != names_.end() && it->key == key)
    return std::vector<const FactSheet*>{sheets_[it->sheet]};
  for (const Ambiguous& a : ambiguous_) {
    if (a.key != key) continue;
    std::vector<const FactSheet*> out;
    for (const std::string& id : a.candidates)
      if (const FactSheet* s = by_id(id)) out.push_back(s);
    if (!out.empty()) return out;
  }
  std::vector<std::string_view> ids;
  for (const FactSheet* s : sheets_) ids.push_back(s->id);
  std::optional<Message> hint;
  if (auto near = nearest_name(name, ids)) hint = message(BaseMessage::nearest_name, *near);
  return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "model", name),
              std::string(where), hint);
}

Result<const FactSheet*> ModelCatalog::find_sheet(std::string_view name,
                                                  std::string_view where) const {
  auto all = resolve_all(name, where);
  if (!all) return tl::unexpected(all.error());
  if (all->size() == 1) return all->front();
  std::string list;
  for (const FactSheet* s : *all) list += (list.empty() ? "" : ", ") + s->id;
  return fail(ErrorCode::ambiguous_name, message(BaseMessage::ambiguous_name, name, "models"),
              std::string(where), message(BaseMessage::choose_one_of, list));
}

Result<Model> ModelCatalog::find(std::string_view name, std::string_view where) const {
  auto sheet = find_sheet(name, where);
  if (!sheet) return tl::unexpected(sheet.error());
  return build_model(**sheet);
}

}  // namespace trigon
