#include "network/catalog.hpp"

#include <algorithm>

#include "hardware/names.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

std::string text_of(const FactGroup& g, std::string_view key) {
  const Fact* f = find_fact(g.facts, key);
  auto v = f ? std::get_if<std::string>(&f->value) : nullptr;
  return v ? *v : std::string();
}

// What a user asks of one item, against the limits of the family.
std::optional<Error> check_item(const NetworkSpec& spec) {
  const ItemOptions& item = spec.item();
  const std::string id = spec.id();
  auto bad = [&](Message what, const char* where, std::optional<Message> hint = std::nullopt) {
    return Error{ErrorCode::bad_argument, std::move(what), where, std::move(hint)};
  };
  auto only_with = [&](bool given, const char* key, const char* flag) -> std::optional<Error> {
    if (!given || spec.has(key)) return std::nullopt;
    return bad(message(NetworkMessage::option_not_for_network, flag, id), flag);
  };
  if (auto e = only_with(!item.size.empty(), "image", "--image")) return e;
  if (auto e = only_with(item.tokens.has_value(), "tokens", "--tokens-per-item")) return e;
  if (auto e = only_with(item.audio_seconds.has_value(), "audio_seconds", "--audio")) return e;
  if (auto e = only_with(item.steps.has_value(), "steps", "--steps")) return e;
  if (auto e = only_with(item.guidance.has_value(), "guidance", "--guidance")) return e;
  if (auto e = only_with(!item.shapes.empty(), "shapes", "--shape")) return e;
  const std::int64_t multiple = spec.whole("image_multiple", 1);
  for (std::int64_t side : item.size) {
    const std::int64_t least = spec.whole("image_least", 32), most = spec.whole("image_most", 4096);
    if (side < least || side > most)
      return bad(message(NetworkMessage::item_size_range, id, least, most, "pixels"), "--image",
                 message(NetworkMessage::nearest_size, std::clamp(side, least, most)));
    if (side % multiple != 0)
      return bad(message(NetworkMessage::item_size_multiple, id, multiple, "pixels"), "--image",
                 message(NetworkMessage::nearest_size,
                         std::max(least, (side + multiple / 2) / multiple * multiple)));
  }
  if (item.tokens) {
    const std::int64_t most = spec.whole("tokens_most", 1 << 20);
    if (*item.tokens < 1 || *item.tokens > most)
      return bad(message(NetworkMessage::item_size_range, id, 1, most, "tokens"),
                 "--tokens-per-item");
  }
  if (item.audio_seconds && !(*item.audio_seconds >= 0.1 && *item.audio_seconds <= 36000))
    return bad(message(NetworkMessage::item_size_range, id, 0.1, 36000, "s"), "--audio");
  if (item.steps && (*item.steps < 1 || *item.steps > 10000))
    return bad(message(NetworkMessage::item_size_range, id, 1, 10000, "steps"), "--steps");
  return std::nullopt;
}

}  // namespace

Result<NetworkCatalog> NetworkCatalog::from(const FactStore& store) {
  NetworkCatalog c;
  for (const FactSheet* sheet : store.of_kind("network")) {
    const auto builder = sheet->text("builder");
    if (!builder) return tl::unexpected(sheet->missing("builder"));
    if (!network_builder(*builder))
      return fail(ErrorCode::malformed, message(NetworkMessage::unknown_builder, *builder),
                  sheet->where);
    for (const FactGroup& g : sheet->groups) {
      if (g.name != "variant") continue;
      std::string id = text_of(g, "id");
      if (id.empty())
        return fail(ErrorCode::malformed, message(BaseMessage::missing_key, "id"), sheet->where);
      c.entries_.push_back({sheet, &g, std::move(id)});
    }
  }
  std::sort(c.entries_.begin(), c.entries_.end(),
            [](const Entry& a, const Entry& b) { return a.id < b.id; });
  for (std::size_t i = 0; i < c.entries_.size(); ++i) {
    c.names_.push_back({normalised_name(c.entries_[i].id), i});
    if (const Fact* f = find_fact(c.entries_[i].variant->facts, "aliases"))
      if (auto list = std::get_if<std::vector<std::string>>(&f->value))
        for (const std::string& alias : *list) c.names_.push_back({normalised_name(alias), i});
  }
  std::sort(c.names_.begin(), c.names_.end(), [](const Name& a, const Name& b) {
    return a.key != b.key ? a.key < b.key : a.entry < b.entry;
  });
  for (std::size_t i = 1; i < c.names_.size(); ++i)
    if (c.names_[i].key == c.names_[i - 1].key && c.names_[i].entry != c.names_[i - 1].entry)
      return fail(ErrorCode::malformed,
                  message(BaseMessage::ambiguous_name, c.names_[i].key, "networks"),
                  c.entries_[c.names_[i].entry].family->where);
  return c;
}

const NetworkCatalog::Entry* NetworkCatalog::entry(std::string_view name) const {
  const std::string key = normalised_name(name);
  auto it = std::lower_bound(names_.begin(), names_.end(), key,
                             [](const Name& n, const std::string& k) { return n.key < k; });
  return it != names_.end() && it->key == key ? &entries_[it->entry] : nullptr;
}

FactSheet variant_sheet(const NetworkCatalog::Entry& entry) {
  FactSheet s;
  s.kind = "network";
  s.id = entry.id;
  s.source = text_of(*entry.variant, "source");
  if (s.source.empty()) s.source = entry.family->source;
  s.date = text_of(*entry.variant, "date");
  if (s.date.empty()) s.date = entry.family->date;
  s.where = entry.family->where;
  s.facts.push_back({"family", entry.family->id, {}, {}});
  for (const Fact& f : entry.variant->facts)
    if (f.key != "id" && f.key != "source" && f.key != "date") s.facts.push_back(f);
  for (const Fact& f : entry.family->facts)
    if (!find_fact(s.facts, f.key)) s.facts.push_back(f);
  return s;
}

Result<Model> build_network(const NetworkCatalog::Entry& entry, const ItemOptions& item) {
  NetworkSpec spec(*entry.family, *entry.variant, item);
  if (auto e = check_item(spec)) return tl::unexpected(*e);
  Model m = network_builder(spec.text("builder"))(spec);
  if (spec.error()) return tl::unexpected(*spec.error());
  return m;
}

Result<Model> NetworkCatalog::find(std::string_view name, const ItemOptions& item,
                                   std::string_view where) const {
  if (const Entry* e = entry(name)) return build_network(*e, item);
  std::vector<std::string_view> ids;
  for (const Entry& e : entries_) ids.push_back(e.id);
  std::optional<Message> hint;
  if (auto near = nearest_name(name, ids)) hint = message(BaseMessage::nearest_name, *near);
  return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "network", name),
              std::string(where), hint);
}

}  // namespace trigon
