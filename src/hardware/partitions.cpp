#include "hardware/partitions.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace trigon {
namespace {

struct Part {
  int compute = 0, memory = 0;  // slices
  std::string name;             // "1g.10gb"
};

struct Division {
  double compute_slices = 0, memory_slices = 0, units_each = 0;
  std::vector<Part> parts;
};

template <class T>
const T* fact_of(const FactGroup& g, const char* key) {
  const Fact* f = find_fact(g.facts, key);
  return f ? std::get_if<T>(&f->value) : nullptr;
}

bool lists(const FactGroup& g, const char* key, const std::string& value) {
  const auto* l = fact_of<std::vector<std::string>>(g, key);
  return l && std::find(l->begin(), l->end(), value) != l->end();
}

int whole(std::string_view s) {
  int n = 0;
  std::from_chars(s.data(), s.data() + s.size(), n);
  return n;
}

std::optional<Division> division_of(const FactStore& store, const Accelerator& card) {
  const FactSheet* sheet = store.find("partitions", "mig");
  if (!sheet || card.vendor != "nvidia") return std::nullopt;
  for (const FactGroup& g : sheet->groups) {
    if (lists(g, "not_ids", card.id)) continue;
    if (!lists(g, "ids", card.id) && !lists(g, "architectures", card.architecture)) continue;
    const double* compute = fact_of<double>(g, "compute_slices");
    const double* memory = fact_of<double>(g, "memory_slices");
    const auto* profiles = fact_of<std::vector<std::string>>(g, "profiles");
    if (!compute || !memory || !profiles) continue;
    Division d;
    d.compute_slices = *compute;
    d.memory_slices = *memory;
    // Slices are whole clusters of multiprocessors: what is left over lies idle.
    const double* each = fact_of<double>(g, "units_each");
    d.units_each = each ? *each : std::floor(card.sm_count.value_or(0) / *compute);
    const double gb = card.memory_nominal.in_base() / 1e9;
    for (const std::string& p : *profiles) {
      Part part;
      const auto slash = p.find('/');
      part.compute = whole(std::string_view(p).substr(0, slash));
      part.memory = whole(std::string_view(p).substr(slash + 1));
      const double size = std::floor(gb * part.memory / d.memory_slices + 0.5);
      part.name =
          std::to_string(part.compute) + "g." + std::to_string(static_cast<int>(size)) + "gb";
      d.parts.push_back(std::move(part));
    }
    return d;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> partition_names(const FactStore& store, const Accelerator& card) {
  std::vector<std::string> out;
  if (const auto d = division_of(store, card))
    for (const Part& p : d->parts) out.push_back(p.name);
  return out;
}

std::optional<Accelerator> partition_of(const FactStore& store, const Accelerator& card,
                                        std::string_view profile) {
  const auto d = division_of(store, card);
  if (!d) return std::nullopt;
  for (const Part& p : d->parts) {
    if (p.name != profile) continue;
    Accelerator a = card;
    a.id = card.id + ":" + p.name;
    a.name = card.name + " (MIG " + p.name + ")";
    double units = p.compute / d->compute_slices;
    if (card.sm_count && *card.sm_count > 0 && d->units_each > 0) {
      a.sm_count = d->units_each * p.compute;
      units = *a.sm_count / *card.sm_count;
    }
    const double memory = p.memory / d->memory_slices;
    for (auto& peak : a.peak)
      if (peak) peak = *peak * units;
    a.memory_nominal = card.memory_nominal * memory;
    if (card.memory_reported) a.memory_reported = *card.memory_reported * memory;
    a.memory_reserved = card.memory_reserved * memory;
    a.memory_bandwidth = card.memory_bandwidth * memory;
    if (card.l2) a.l2 = *card.l2 * memory;
    if (card.board_power) a.board_power = *card.board_power * units;
    a.peer_link = PeerLink{};
    a.mig_max_instances.reset();
    a.launch_price.reset();
    return a;
  }
  return std::nullopt;
}

}  // namespace trigon
