#include "hardware/parse.hpp"

#include <algorithm>
#include <charconv>

#include "base/units.hpp"
#include "hardware/names.hpp"

namespace trigon {
namespace {

// What a desktop holds of the card that shows it, where nothing else is stated: the median of four
// readings on an RTX 5090 under Windows (nibor1896/Crow issue 105, 2026-08-20).
const Bytes kDesktop = mebibytes(1586);

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

constexpr int kMostCounted = 1000000;  // cards of a node, or nodes: more is a slip

struct Count {
  int value = 0;  // 0: written, but outside 1 to kMostCounted
  std::string_view written, rest;
};

// "8x..." gives 8 and the rest; nothing when the text does not begin so.
std::optional<Count> take_count(std::string_view s) {
  Count c;
  auto r = std::from_chars(s.data(), s.data() + s.size(), c.value);
  if (r.ptr == s.data()) return std::nullopt;
  if (r.ec != std::errc() || c.value < 1 || c.value > kMostCounted) c.value = 0;
  c.written = s.substr(0, static_cast<std::size_t>(r.ptr - s.data()));
  std::string_view rest = trimmed(s.substr(c.written.size()));
  for (std::string_view times : {"x", "X", "*", "\xc3\x97"})
    if (rest.substr(0, times.size()) == times) {
      c.rest = trimmed(rest.substr(times.size()));
      return c;
    }
  return std::nullopt;
}

tl::unexpected<Error> bad_hardware(std::string_view text, std::string_view where) {
  return fail(ErrorCode::bad_argument, message(HardwareMessage::bad_hardware, text),
              std::string(where));
}

Result<CardState> parse_card(std::string_view text, std::string_view where) {
  CardState card;
  auto bad_facts = [&] {
    return fail(ErrorCode::bad_argument, message(HardwareMessage::bad_card_facts, text),
                std::string(where));
  };
  std::string_view rest = text;
  while (!trimmed(rest).empty()) {
    auto comma = rest.find(',');
    std::string_view item = trimmed(rest.substr(0, comma));
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
    auto equals = item.find('=');
    std::string_view key = trimmed(item.substr(0, equals));
    std::string_view value = equals == item.npos ? "" : trimmed(item.substr(equals + 1));
    if (key == "used") {
      auto v = parse_bytes(value, where);
      if (!v) return tl::unexpected(v.error());
      card.memory_used = *v;
    } else if (key == "memory") {
      auto v = parse_bytes(value, where);
      if (!v) return tl::unexpected(v.error());
      if (*v <= Bytes{}) return bad_facts();
      card.memory = *v;
    } else if (key == "power") {
      auto v = parse_watts(value, where);
      if (!v) return tl::unexpected(v.error());
      if (*v <= Watts{}) return bad_facts();
      card.power_limit = *v;
    } else if (key == "threads") {
      int n = 0;
      const auto end = value.data() + value.size();
      if (auto r = std::from_chars(value.data(), end, n); r.ec != std::errc() || r.ptr != end)
        return bad_facts();
      if (n < 1) return bad_facts();
      card.threads = n;
    } else if (key == "display" && equals == item.npos) {
      card.display = true;
    } else if (key == "cuda") {
      card.cuda = CudaVersion::read(value);
      if (!card.cuda) return bad_facts();
    } else if (key == "ecc" && (value == "on" || value == "off")) {
      card.ecc = value == "on";
    } else if (key == "mig") {
      return fail(ErrorCode::unsupported, message(HardwareMessage::mig_instances, item),
                  std::string(where));
    } else if (key == "used" || key == "display" || key == "ecc" || key.empty()) {
      return bad_facts();
    } else {
      std::optional<Message> hint;
      if (auto near =
              nearest_name(key, {"used", "memory", "display", "power", "ecc", "cuda", "threads"}))
        hint = message(BaseMessage::nearest_name, *near);
      return fail(ErrorCode::bad_argument, message(BaseMessage::unknown_key, key),
                  std::string(where), hint);
    }
  }
  if (card.display && card.memory_used <= Bytes{}) card.memory_used = kDesktop;
  return card;
}

// The PCIe link, or PCIe 4.0 x16 where the catalogue is silent.
Link pcie_link(const Accelerator& a, std::vector<Message>& assumed) {
  Link l;
  l.topology = PeerTopology::none;
  if (a.pcie_one_way) {
    auto generation = a.sheet ? a.sheet->number("pcie.generation") : std::nullopt;
    auto lanes = a.sheet ? a.sheet->number("pcie.lanes") : std::nullopt;
    l.id = generation && lanes ? "pcie" + write_number(*generation) + "x" + write_number(*lanes)
                               : "pcie";
    l.one_way = *a.pcie_one_way;
  } else {
    l.id = "pcie4x16";
    l.one_way = gigabytes_per_second(16.0 * 16 / 8 * 128 / 130);
    assumed.push_back(message(HardwareMessage::assumed_pcie, a.id, l.id));
  }
  return l;
}

Link peer_link(const Accelerator& a) {
  return {a.peer_link.type, a.peer_link.topology, a.peer_link.one_way};
}

Link default_intra(const Accelerator& a, int per_node, std::vector<Message>& assumed) {
  bool fabric = a.peer_link.topology == PeerTopology::fabric_switch ||
                a.peer_link.topology == PeerTopology::mesh;
  if (fabric && a.peer_link.one_way > BytesPerSecond{}) return peer_link(a);
  std::vector<Message> unneeded;
  Link l = pcie_link(a, per_node > 1 ? assumed : unneeded);
  if (per_node > 1 && a.peer_link.topology == PeerTopology::bridge_pair)
    assumed.push_back(message(HardwareMessage::assumed_no_bridge, a.id));
  return l;
}

// Between nodes when nobody said: the network of the typical node of this kind, else one 400 Gb/s
// port per accelerator with a fabric of its own and one 100 Gb/s port per node without.
void default_inter(const HardwareCatalog& catalog, Cluster& c) {
  const Accelerator& a = *c.accelerator;
  if (const System* s = catalog.typical_system(a, c.per_node)) {
    c.inter = Link{"net-" + s->id, PeerTopology::fabric_switch, *s->inter_one_way};
    c.assumptions.push_back(message(HardwareMessage::assumed_network,
                                    s->nic.empty() ? "network" : s->nic, s->id, *s->inter_one_way));
    return;
  }
  bool fabric = a.peer_link.topology == PeerTopology::fabric_switch ||
                a.peer_link.topology == PeerTopology::mesh;
  BytesPerSecond one_way =
      fabric ? gigabits_per_second(400) : gigabits_per_second(100) / c.per_node;
  c.inter = Link{fabric ? "ib400" : "eth100-shared", PeerTopology::fabric_switch, one_way};
  c.assumptions.push_back(message(HardwareMessage::assumed_default_network, c.inter->id, one_way));
}

std::string canonical(const Cluster& c) {
  std::string out;
  if (c.nodes > 1) out += std::to_string(c.nodes) + "x";
  if (!c.system.empty()) return out + c.system;
  if (c.per_node > 1 || c.nodes > 1) out += std::to_string(c.per_node) + "x";
  return out + c.accelerator->id;
}

struct Split {
  std::string_view name;
  std::vector<std::string_view> links;
  std::string_view card;
};

Result<Split> split(std::string_view text, std::string_view where) {
  Split s;
  std::string_view rest = trimmed(text);
  auto open = rest.find('{');
  std::string tail;
  if (open != rest.npos) {
    auto close = rest.find('}', open);
    if (close == rest.npos) return bad_hardware(text, where);
    s.card = rest.substr(open + 1, close - open - 1);
    std::string_view after = trimmed(rest.substr(close + 1));
    rest = trimmed(rest.substr(0, open));
    if (!after.empty()) {  // "rtx-4090{display}@pcie4x8"
      if (after[0] != '@' || rest.find('@') != rest.npos) return bad_hardware(text, where);
      after.remove_prefix(1);
      while (true) {
        auto at = after.find('@');
        s.links.push_back(trimmed(after.substr(0, at)));
        if (at == after.npos) break;
        after.remove_prefix(at + 1);
      }
    }
  }
  auto at = rest.find('@');
  s.name = trimmed(rest.substr(0, at));
  while (at != rest.npos) {
    rest.remove_prefix(at + 1);
    at = rest.find('@');
    s.links.push_back(trimmed(rest.substr(0, at)));
  }
  if (s.name.empty()) return bad_hardware(text, where);
  return s;
}

Result<void> apply_link(std::string_view name, const HardwareCatalog& catalog, Cluster& c,
                        std::string_view where) {
  const Accelerator& a = *c.accelerator;
  std::string key = normalised_name(name);
  if (key == "nvlink" || key == "xgmi" || key == "peer") {
    if (a.peer_link.topology == PeerTopology::none)
      return fail(ErrorCode::bad_argument, message(HardwareMessage::no_peer_link, a.id),
                  std::string(where));
    if (a.peer_link.one_way <= BytesPerSecond{})
      return tl::unexpected(a.sheet->missing("link.one_way_gb_per_s"));
    c.intra = peer_link(a);
    return {};
  }
  if (key == "pcie") {
    if (!a.pcie_one_way)
      return fail(ErrorCode::missing_fact, message(HardwareMessage::no_pcie_facts, a.id),
                  std::string(where));
    c.intra = pcie_link(a, c.assumptions);
    return {};
  }
  auto link = catalog.find_link(name, where);
  if (!link) return tl::unexpected(link.error());
  if ((*link)->kind == LinkKind::network)
    c.inter = (*link)->link;
  else
    c.intra = (*link)->link;
  return {};
}

}  // namespace

Cluster make_cluster(const HardwareCatalog& catalog, const Accelerator& accelerator, int per_node,
                     int nodes) {
  Cluster c;
  c.accelerator = &accelerator;
  c.per_node = per_node;
  c.nodes = nodes;
  c.intra = default_intra(accelerator, per_node, c.assumptions);
  // Two devices of a mesh of eight have one of their seven links between them.
  if (c.intra.topology == PeerTopology::mesh)
    for (const System& s : catalog.systems())
      if (s.accelerator == &accelerator && s.topology == PeerTopology::mesh)
        c.intra.mesh = std::max(c.intra.mesh, s.count);
  if (nodes > 1) default_inter(catalog, c);
  c.written = canonical(c);
  return c;
}

Cluster make_cluster(const HardwareCatalog& catalog, const System& system, int nodes) {
  Cluster c;
  c.accelerator = system.accelerator;
  c.per_node = system.count;
  c.nodes = nodes;
  c.system = system.id;
  if (system.intra_one_way && system.count > 1)
    c.intra = {system.topology == PeerTopology::none ? "pcie" : system.accelerator->peer_link.type,
               system.topology, *system.intra_one_way};
  else
    c.intra = default_intra(*system.accelerator, system.count, c.assumptions);
  if (c.intra.id.empty()) c.intra.id = std::string(name_of(system.topology));
  if (nodes > 1 && system.inter_one_way)
    c.inter = Link{"net-" + system.id, PeerTopology::fabric_switch, *system.inter_one_way};
  else if (nodes > 1)
    default_inter(catalog, c);
  c.host.memory = system.host_memory;
  c.written = canonical(c);
  return c;
}

namespace {

// What a text names, its counts taken off: all candidates when the name is ambiguous.
struct Named {
  std::vector<int> counts;
  std::vector<const System*> systems;
  std::vector<const Accelerator*> accelerators;
  std::optional<Error> ambiguous;  // what to say when only one will do
};

Result<Named> resolve(std::string_view text, std::string_view name, const HardwareCatalog& catalog,
                      std::string_view where) {
  Named n;
  // The whole text may itself be a name ("7900 XT"), so counts are taken only when it is not.
  while (true) {
    auto s = catalog.system_or_null(name, where);
    if (!s) {
      n.ambiguous = s.error();
      if (auto alias = catalog.accelerators.alias(name))
        for (const System& y : catalog.systems())
          if (std::find(alias->targets.begin(), alias->targets.end(), y.id) != alias->targets.end())
            n.systems.push_back(&y);
      return n;
    }
    if (*s) {
      n.systems = {*s};
      return n;
    }
    auto all = catalog.accelerators.resolve_all(name, where);
    if (all) {
      n.accelerators = std::move(*all);
      if (n.accelerators.size() > 1) n.ambiguous = catalog.accelerators.find(name, where).error();
      return n;
    }
    auto count = n.counts.size() < 2 ? take_count(name) : std::nullopt;
    if (!count) {
      if (take_count(name)) return bad_hardware(text, where);  // a third count
      if (name.find('+') != name.npos &&
          all.error().what.id != message_id(HardwareMessage::outside_catalogue))
        return fail(ErrorCode::unsupported, message(HardwareMessage::mixed_hardware, text),
                    std::string(where));
      return tl::unexpected(all.error());
    }
    if (count->value == 0)
      return fail(ErrorCode::bad_argument,
                  message(BaseMessage::number_out_of_range, count->written, "1",
                          std::to_string(kMostCounted)),
                  std::string(where));
    n.counts.push_back(count->value);
    name = count->rest;
    if (name.empty()) return bad_hardware(text, where);
  }
}

// Puts the links and card facts of the text on a cluster made of the catalogue's facts alone.
Result<Cluster> finish(Cluster c, const Split& parts, const HardwareCatalog& catalog,
                       std::string_view where) {
  bool network_given = false, intra_given = false;
  std::vector<Message> assumed = std::move(c.assumptions);
  c.assumptions.clear();
  std::string written = canonical(c);
  for (std::string_view link : parts.links) {
    std::optional<Link> before = c.inter;
    c.inter.reset();
    if (auto r = apply_link(link, catalog, c, where); !r) return tl::unexpected(r.error());
    if (c.inter) {
      network_given = true;
    } else {
      intra_given = true;
      c.inter = before;
    }
    written += "@" + std::string(link);
  }
  for (Message& m : assumed) {
    bool about_network = m.id == message_id(HardwareMessage::assumed_network) ||
                         m.id == message_id(HardwareMessage::assumed_default_network);
    if (about_network ? !network_given : !intra_given) c.assumptions.push_back(std::move(m));
  }
  auto card = parse_card(parts.card, where);
  if (!card) return tl::unexpected(card.error());
  if (card->cuda && c.accelerator->vendor != "nvidia")
    return fail(ErrorCode::unsupported, message(HardwareMessage::no_cuda, c.accelerator->id),
                std::string(where));
  c.card = *card;
  c.written = written;
  c.written = write_hardware(c);
  return c;
}

Result<std::vector<Cluster>> parse_clusters(std::string_view text, const HardwareCatalog& catalog,
                                            std::string_view where, bool several) {
  auto parts = split(text, where);
  if (!parts) return tl::unexpected(parts.error());
  if (normalised_name(parts->name) == "here")
    return fail(ErrorCode::unsupported, message(HardwareMessage::this_machine, text),
                std::string(where));
  auto named = resolve(text, parts->name, catalog, where);
  if (!named) return tl::unexpected(named.error());
  if (named->ambiguous && !several) return tl::unexpected(*named->ambiguous);
  const std::vector<int>& counts = named->counts;
  std::vector<Cluster> out;
  auto add = [&](Cluster c) -> Result<void> {
    auto done = finish(std::move(c), *parts, catalog, where);
    if (!done) return tl::unexpected(done.error());
    out.push_back(std::move(*done));
    return {};
  };
  for (const System* system : named->systems) {
    if (counts.size() > 1)
      return fail(ErrorCode::bad_argument,
                  message(HardwareMessage::system_has_count, system->id, system->count),
                  std::string(where));
    auto r = add(make_cluster(catalog, *system, counts.empty() ? 1 : counts[0]));
    if (!r) return tl::unexpected(r.error());
  }
  for (const Accelerator* accelerator : named->accelerators) {
    int nodes = counts.size() == 2 ? counts[0] : 1;
    auto r = add(make_cluster(catalog, *accelerator, counts.empty() ? 1 : counts.back(), nodes));
    if (!r) return tl::unexpected(r.error());
  }
  return out;
}

}  // namespace

Result<Cluster> parse_hardware(std::string_view text, const HardwareCatalog& catalog,
                               std::string_view where) {
  auto all = parse_clusters(text, catalog, where, false);
  if (!all) return tl::unexpected(all.error());
  return std::move(all->front());
}

Result<std::vector<Cluster>> parse_hardware_candidates(std::string_view text,
                                                       const HardwareCatalog& catalog,
                                                       std::string_view where) {
  return parse_clusters(text, catalog, where, true);
}

std::string write_hardware(const Cluster& c) {
  std::string out = c.written.empty() ? canonical(c) : c.written.substr(0, c.written.find('{'));
  std::string card;
  auto add = [&card](const std::string& s) { card += (card.empty() ? "" : ",") + s; };
  if (c.card.memory_used > Bytes{} && !(c.card.display && c.card.memory_used == kDesktop))
    add("used=" + write_bytes(c.card.memory_used));
  if (c.card.memory) add("memory=" + write_bytes(*c.card.memory));
  if (c.card.display) add("display");
  if (c.card.power_limit) add("power=" + write_watts(*c.card.power_limit));
  if (c.card.ecc) add(*c.card.ecc ? "ecc=on" : "ecc=off");
  if (c.card.cuda) add("cuda=" + c.card.cuda->written());
  if (c.card.threads) add("threads=" + write_number(*c.card.threads));
  return card.empty() ? out : out + "{" + card + "}";
}

}  // namespace trigon
