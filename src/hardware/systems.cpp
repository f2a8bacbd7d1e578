#include "hardware/systems.hpp"

#include <algorithm>

#include "hardware/names.hpp"

namespace trigon {
namespace {

Result<System> read_system(const FactSheet& s, const AcceleratorCatalog& accelerators) {
  System y;
  y.id = s.id;
  y.sheet = &s;
  y.name = s.text("name").value_or(s.id);
  y.vendor = s.text("vendor").value_or("");
  auto accelerator = s.text("accelerator");
  if (!accelerator) return tl::unexpected(s.missing("accelerator"));
  y.accelerator = accelerators.by_id(*accelerator);
  if (!y.accelerator)
    return fail(ErrorCode::malformed,
                message(HardwareMessage::unknown_reference, s.kind + "/" + s.id, "accelerator",
                        *accelerator),
                s.where);
  auto count = s.number("count");
  if (!count || *count < 1) return tl::unexpected(s.missing("count"));
  y.count = static_cast<int>(*count);
  auto topology = topology_by_name(s.text("intra.topology").value_or(""));
  if (!topology) return tl::unexpected(s.missing("intra.topology"));
  y.topology = *topology;
  if (auto v = s.number("intra.one_way_gb_per_s")) y.intra_one_way = gigabytes_per_second(*v);
  if (auto v = s.number("inter.one_way_gb_per_s_per_accelerator"))
    y.inter_one_way = gigabytes_per_second(*v);
  y.nic = s.text("inter.nic").value_or("");
  if (auto v = s.number("host.ram_gb")) y.host_memory = gigabytes(*v);
  if (auto v = s.number("power_w")) y.power = watts(*v);
  return y;
}

Result<NamedLink> read_link(const FactSheet& s) {
  NamedLink l;
  l.sheet = &s;
  l.link.id = s.id;
  l.name = s.text("name").value_or(s.id);
  auto topology = topology_by_name(s.text("topology").value_or(""));
  if (!topology) return tl::unexpected(s.missing("topology"));
  l.link.topology = *topology;
  auto one_way = s.number("one_way_gb_per_s");
  if (!one_way) return tl::unexpected(s.missing("one_way_gb_per_s"));
  l.link.one_way = gigabytes_per_second(*one_way);
  std::string kind = s.text("link_kind").value_or("");
  if (kind != "peer" && kind != "pcie" && kind != "network")
    return tl::unexpected(s.missing("link_kind"));
  l.kind = kind == "peer" ? LinkKind::peer : kind == "pcie" ? LinkKind::pcie : LinkKind::network;
  return l;
}

}  // namespace

Result<HardwareCatalog> HardwareCatalog::from(const FactStore& store) {
  HardwareCatalog h;
  auto accelerators = AcceleratorCatalog::from(store);
  if (!accelerators) return tl::unexpected(accelerators.error());
  h.accelerators = std::move(*accelerators);
  for (const FactSheet* s : store.of_kind("system")) {
    auto y = read_system(*s, h.accelerators);
    if (!y) return tl::unexpected(y.error());
    h.systems_.push_back(std::move(*y));
  }
  for (const FactSheet* s : store.of_kind("link")) {
    auto l = read_link(*s);
    if (!l) return tl::unexpected(l.error());
    h.links_.push_back(std::move(*l));
  }
  return h;
}

Result<const System*> HardwareCatalog::system_or_null(std::string_view name,
                                                      std::string_view where) const {
  std::string key = normalised_name(name);
  for (const System& s : systems_)
    if (normalised_name(s.id) == key) return &s;
  auto alias = accelerators.alias(name);
  if (!alias || alias->kind != AliasKind::system) return nullptr;
  if (alias->targets.size() == 1) {
    for (const System& s : systems_)
      if (s.id == alias->targets[0]) return &s;
    return nullptr;
  }
  std::string choices;
  for (std::string_view id : alias->targets)
    choices += (choices.empty() ? "" : ", ") + std::string(id);
  return fail(ErrorCode::ambiguous_name, message(BaseMessage::ambiguous_name, name, "systems"),
              std::string(where), message(BaseMessage::choose_one_of, choices));
}

Result<const System*> HardwareCatalog::find_system(std::string_view name,
                                                   std::string_view where) const {
  auto found = system_or_null(name, where);
  if (!found || *found) return found;
  std::vector<std::string_view> ids;
  for (const System& s : systems_) ids.push_back(s.id);
  std::optional<Message> hint;
  if (auto near = nearest_name(name, ids)) hint = message(BaseMessage::nearest_name, *near);
  return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "system", name),
              std::string(where), hint);
}

Result<const NamedLink*> HardwareCatalog::find_link(std::string_view name,
                                                    std::string_view where) const {
  std::string key = normalised_name(name);
  std::vector<std::string_view> ids;
  for (const NamedLink& l : links_) {
    if (normalised_name(l.link.id) == key) return &l;
    ids.push_back(l.link.id);
  }
  std::optional<Message> hint;
  if (auto near = nearest_name(name, ids)) hint = message(BaseMessage::nearest_name, *near);
  return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "link", name),
              std::string(where), hint);
}

const System* HardwareCatalog::typical_system(const Accelerator& a, int count) const {
  const System* best = nullptr;
  for (const System& s : systems_) {
    if (s.accelerator != &a || s.count != count || !s.inter_one_way) continue;
    bool own = s.vendor == a.vendor, best_own = best && best->vendor == a.vendor;
    if (!best || (own && !best_own)) best = &s;
  }
  return best;
}

}  // namespace trigon
