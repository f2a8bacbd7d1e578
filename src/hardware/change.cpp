#include "hardware/change.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "hardware/names.hpp"
#include "hardware/parse.hpp"

namespace trigon {
namespace {

struct Key {
  std::string_view name;
  HardwareKey key;
};
// Further names of the same: those of data sheets and of other tools.
constexpr Key kKeys[] = {{"card", HardwareKey::card},
                         {"bandwidth", HardwareKey::bandwidth},
                         {"peak", HardwareKey::peak},
                         {"memory", HardwareKey::memory},
                         {"cache", HardwareKey::cache},
                         {"link", HardwareKey::link},
                         {"network", HardwareKey::network},
                         {"peer", HardwareKey::peer},
                         {"latency", HardwareKey::latency},
                         {"power", HardwareKey::power},
                         {"mem_bw", HardwareKey::bandwidth},
                         {"mem-bw", HardwareKey::bandwidth},
                         {"compute", HardwareKey::peak},
                         {"nvlink", HardwareKey::peer},
                         {"memory-bandwidth", HardwareKey::bandwidth}};
constexpr std::size_t kNames = 10;  // of those, the ones that are listed

// "2x", "x2", "+50%", "-20%" as a factor above zero.
std::optional<double> factor_of(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  std::optional<double> out;
  if (text.back() == 'x' || text.back() == 'X') {
    if (auto n = parse_number(text.substr(0, text.size() - 1))) out = *n;
  } else if (text.front() == 'x' || text.front() == 'X') {
    if (auto n = parse_number(text.substr(1))) out = *n;
  } else if (text.back() == '%' && (text.front() == '+' || text.front() == '-')) {
    if (auto n = parse_number(text.substr(1, text.size() - 2)))
      out = 1 + (text.front() == '-' ? -*n : *n) / 100;
  }
  if (out && !(*out > 0)) return std::nullopt;
  return out;
}

template <class T>
Result<double> base_of(const Result<T>& r, std::string_view text, std::string_view where) {
  if (!r) return tl::unexpected(r.error());
  if (r->in_base() <= 0)
    return fail(ErrorCode::bad_argument, message(BaseMessage::bad_number, text),
                std::string(where));
  return r->in_base();
}

Result<double> value_of(HardwareKey key, std::string_view text, std::string_view where) {
  switch (key) {
    case HardwareKey::bandwidth:
    case HardwareKey::link:
    case HardwareKey::network:
    case HardwareKey::peer:
      return base_of(parse_bandwidth(text, where), text, where);
    case HardwareKey::memory:
    case HardwareKey::cache:
      return base_of(parse_bytes(text, where), text, where);
    case HardwareKey::latency:
      return base_of(parse_duration(text, where), text, where);
    case HardwareKey::power:
      return base_of(parse_watts(text, where), text, where);
    default:
      return fail(ErrorCode::bad_argument, message(HardwareMessage::bad_factor, text),
                  std::string(where), message(BaseMessage::write_one_of, "1.5x, +50%, -20%"));
  }
}

}  // namespace

const std::vector<std::string_view>& hardware_keys() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (std::size_t i = 0; i < kNames; ++i) out.push_back(kKeys[i].name);
    return out;
  }();
  return names;
}

Result<HardwareChange> parse_hardware_change(std::string_view key, std::string_view value,
                                             std::string_view where) {
  auto known =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& k) { return k.name == key; });
  if (known == std::end(kKeys))
    return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_key, key),
                std::string(where));
  HardwareChange c;
  c.key = known->key;
  if (c.key == HardwareKey::card) {
    c.name = value;
    return c;
  }
  if (auto factor = factor_of(value)) {
    c.factor = *factor;
    return c;
  }
  auto base = value_of(c.key, value, where);
  if (!base) return tl::unexpected(base.error());
  c.value = *base;
  return c;
}

namespace {

Result<void> change_link(std::optional<Link>& link, const HardwareChange& c,
                         std::string_view where) {
  if (!link || link->one_way <= BytesPerSecond{})
    return fail(ErrorCode::bad_argument, message(HardwareMessage::no_such_link),
                std::string(where));
  link->one_way = c.value ? BytesPerSecond::base(*c.value) : link->one_way * c.factor;
  return {};
}

Result<void> apply(const HardwareChange& c, Accelerator& a, Cluster& cluster,
                   std::string_view where) {
  auto scaled = [&](double old) { return c.value ? *c.value : old * c.factor; };
  std::optional<Link> intra = cluster.intra;
  switch (c.key) {
    case HardwareKey::card:
      break;
    case HardwareKey::bandwidth:
      a.memory_bandwidth = BytesPerSecond::base(scaled(a.memory_bandwidth.in_base()));
      break;
    case HardwareKey::peak:
      for (auto& p : a.peak)
        if (p) p = *p * c.factor;
      break;
    case HardwareKey::memory: {
      const double nominal = a.memory_nominal.in_base();
      const double factor = c.value && nominal > 0 ? *c.value / nominal : c.factor;
      a.memory_nominal = a.memory_nominal * factor;
      if (a.memory_reported) a.memory_reported = *a.memory_reported * factor;
      if (cluster.card.memory) cluster.card.memory = *cluster.card.memory * factor;
      break;
    }
    case HardwareKey::cache:
      if (!a.l2 && !c.value)
        return fail(ErrorCode::missing_fact, message(BaseMessage::missing_fact, "l2", a.id),
                    std::string(where));
      a.l2 = Bytes::base(scaled(a.l2 ? a.l2->in_base() : 0));
      break;
    case HardwareKey::network:
      return change_link(cluster.inter, c, where);
    case HardwareKey::link:
      if (cluster.nodes > 1) return change_link(cluster.inter, c, where);
      [[fallthrough]];
    case HardwareKey::peer:
      if (auto good = change_link(intra, c, where); !good) return good;
      cluster.intra = *intra;
      break;
    case HardwareKey::latency:
      cluster.intra.latency_factor *= c.factor;
      if (c.value) cluster.intra.latency = Seconds::base(*c.value);
      if (cluster.inter) {
        cluster.inter->latency_factor *= c.factor;
        if (c.value) cluster.inter->latency = Seconds::base(*c.value);
      }
      break;
    case HardwareKey::power: {
      const double now = cluster.card.power_limit ? cluster.card.power_limit->in_base()
                         : a.board_power          ? a.board_power->in_base()
                                                  : 0;
      if (!c.value && now <= 0)
        return fail(ErrorCode::missing_fact, message(BaseMessage::missing_fact, "power", a.id),
                    std::string(where));
      cluster.card.power_limit = Watts::base(scaled(now));
      break;
    }
  }
  return {};
}

}  // namespace

Result<ChangedHardware> changed(const Cluster& cluster, std::span<const HardwareChange> changes,
                                const HardwareCatalog& catalog, std::string_view where,
                                bool side_by_side) {
  ChangedHardware out;
  out.cluster = cluster;
  for (const HardwareChange& c : changes) {
    if (c.key != HardwareKey::card) continue;
    auto card = catalog.accelerators.find(c.name, where);
    if (!card) return tl::unexpected(card.error());
    Cluster other = make_cluster(catalog, **card, cluster.per_node, cluster.nodes);
    // A network that somebody named, and the host, stay.
    if (cluster.inter && cluster.written.find('@') != std::string::npos)
      other.inter = cluster.inter;
    other.host = cluster.host;
    out.cluster = std::move(other);
  }
  auto card = std::make_shared<Accelerator>(*out.cluster.accelerator);
  out.cluster.accelerator = card.get();
  for (const HardwareChange& c : changes) {
    if (side_by_side && c.key == HardwareKey::network && !out.cluster.inter) continue;
    if (auto good = apply(c, *card, out.cluster, where); !good) return tl::unexpected(good.error());
  }
  out.accelerator = std::move(card);
  return out;
}

}  // namespace trigon
