#include "hardware/catalog.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "hardware/names.hpp"
#include "hardware/partitions.hpp"

namespace trigon {
namespace {

constexpr std::array<std::string_view, kMathModes> kModeNames = {
    "fp64_vector",
    "fp64_matrix",
    "fp32_vector",
    "fp32_matrix",
    "tf32_matrix",
    "fp16_vector",
    "fp16_matrix_fp16_accumulate",
    "fp16_matrix_fp32_accumulate",
    "bf16_matrix",
    "fp8_matrix",
    "fp8_matrix_fp16_accumulate",
    "int8_matrix",
    "int4_matrix",
    "fp4_matrix",
    "int8_vector",
    "int4_vector",
    "bf16_vector",
};
constexpr std::array<std::string_view, 4> kTopologyNames = {"none", "bridge_pair", "mesh",
                                                            "fabric_switch"};

std::optional<DeviceKind> device_kind(std::string_view s) {
  if (s == "gpu") return DeviceKind::gpu;
  if (s == "apu") return DeviceKind::apu;
  if (s == "cpu") return DeviceKind::cpu;
  if (s == "npu") return DeviceKind::npu;
  return std::nullopt;
}

}  // namespace

std::string_view name_of(MathMode m) { return kModeNames[static_cast<std::size_t>(m)]; }

std::string peak_key(MathMode m) {
  std::string_view n = name_of(m);
  return "peak." + std::string(n) + (n.substr(0, 3) == "int" ? "_tops" : "_tflops");
}

std::string_view name_of(PeerTopology t) { return kTopologyNames[static_cast<std::size_t>(t)]; }

std::optional<PeerTopology> topology_by_name(std::string_view name) {
  for (std::size_t i = 0; i < kTopologyNames.size(); ++i)
    if (kTopologyNames[i] == name) return static_cast<PeerTopology>(i);
  return std::nullopt;
}

Result<Accelerator> read_accelerator(const FactSheet& sheet) {
  static const std::array<std::string, kMathModes> peak_keys = [] {
    std::array<std::string, kMathModes> keys;
    for (std::size_t i = 0; i < kMathModes; ++i) keys[i] = peak_key(static_cast<MathMode>(i));
    return keys;
  }();
  Accelerator a;
  a.id = sheet.id;
  a.sheet = &sheet;
  bool has_peak = false, has_topology = false, has_kind = false;
  // One pass over the facts: the catalogue is read at every start.
  for (const Fact& f : sheet.facts) {
    std::string_view k = f.key;
    if (auto n = std::get_if<double>(&f.value)) {
      double v = *n;
      if (k.substr(0, 5) == "peak.") {
        auto it = std::find(peak_keys.begin(), peak_keys.end(), k);
        if (it == peak_keys.end())
          return fail(ErrorCode::malformed, message(BaseMessage::unknown_key, k), sheet.where);
        a.peak[static_cast<std::size_t>(it - peak_keys.begin())] = teraflops_per_second(v);
        has_peak = true;
      } else if (k == "memory.nominal_gb") {
        a.memory_nominal = gigabytes(v);
      } else if (k == "memory.reported_mib") {
        a.memory_reported = mebibytes(v);
      } else if (k == "memory.bandwidth_gb_per_s") {
        a.memory_bandwidth = gigabytes_per_second(v);
      } else if (k == "memory.l2_mb") {
        a.l2 = mebibytes(v);  // caches are quoted in powers of two
      } else if (k == "units") {
        a.sm_count = v;
      } else if (k == "boost_mhz") {
        a.boost_hz = v * 1e6;
      } else if (k == "compute_capability") {
        a.compute_capability = v;
      } else if (k == "board_power_w") {
        a.board_power = watts(v);
      } else if (k == "link.one_way_gb_per_s") {
        a.peer_link.one_way = gigabytes_per_second(v);
      } else if (k == "link.both_ways_gb_per_s") {
        a.peer_link.both_ways = gigabytes_per_second(v);
      } else if (k == "pcie.one_way_gb_per_s") {
        a.pcie_one_way = gigabytes_per_second(v);
      } else if (k == "mig_max_instances") {
        a.mig_max_instances = v;
      } else if (k == "launch_price_usd") {
        a.launch_price = dollars(v);
      } else if (k == "devices_per_board") {
        a.devices_per_board = static_cast<int>(v);
      }
    } else if (auto t = std::get_if<std::string>(&f.value)) {
      if (k == "memory.type") {
        a.memory_type = *t;
      } else if (k == "name") {
        a.name = *t;
      } else if (k == "vendor") {
        a.vendor = *t;
      } else if (k == "architecture") {
        a.architecture = *t;
      } else if (k == "family") {
        a.family = *t;
      } else if (k == "form_factor") {
        a.form_factor = *t;
      } else if (k == "gfx") {
        a.gfx = *t;
      } else if (k == "launch_date") {
        a.launch_date = *t;
      } else if (k == "link.type") {
        a.peer_link.type = *t;
      } else if (k == "link.topology") {
        auto topology = topology_by_name(*t);
        has_topology = topology.has_value();
        if (topology) a.peer_link.topology = *topology;
      } else if (k == "device_kind") {
        auto kind = device_kind(*t);
        has_kind = kind.has_value();
        if (kind) a.kind = *kind;
      }
    } else if (auto b = std::get_if<bool>(&f.value)) {
      if (k == "sparsity_2to4") a.sparsity_2to4 = *b;
      if (k == "announced") a.announced = *b;
      if (k == "memory.unified") a.unified_memory = *b;
    }
  }
  if (a.family.empty()) return tl::unexpected(sheet.missing("family"));
  if (a.vendor.empty()) return tl::unexpected(sheet.missing("vendor"));
  if (!has_kind) return tl::unexpected(sheet.missing("device_kind"));
  if (!has_topology) return tl::unexpected(sheet.missing("link.topology"));
  if (a.memory_nominal <= Bytes{}) return tl::unexpected(sheet.missing("memory.nominal_gb"));
  if (a.memory_bandwidth <= BytesPerSecond{})
    return tl::unexpected(sheet.missing("memory.bandwidth_gb_per_s"));
  if (!has_peak) return tl::unexpected(sheet.missing("peak"));
  return a;
}

std::optional<CudaVersion> CudaVersion::read(std::string_view text) {
  CudaVersion v;
  const auto end = text.data() + text.size();
  auto r = std::from_chars(text.data(), end, v.major);
  if (r.ec != std::errc() || v.major < 1) return std::nullopt;
  if (r.ptr == end) return v;
  if (*r.ptr != '.') return std::nullopt;
  r = std::from_chars(r.ptr + 1, end, v.minor);
  if (r.ec != std::errc() || r.ptr != end || v.minor < 0) return std::nullopt;
  return v;
}

std::optional<Bytes> Accelerator::context_with(std::optional<CudaVersion> cuda) const {
  if (cuda)
    for (const OlderContext& o : older_contexts)
      if (*cuda < o.before) return o.context;
  return context;
}

// What drivers keep and contexts take, by architecture and, where they differ, by size: the last
// entry that speaks of a card holds. Entries of older versions of CUDA stand oldest first, those of
// all cards of a maker last.
void read_device_memory(const FactStore& store, std::vector<Accelerator>& cards) {
  const FactSheet* sheet = store.find("device-memory", "device-memory");
  if (!sheet) return;
  for (const FactGroup& g : sheet->groups) {
    auto text = [&](const char* key) {
      const Fact* f = find_fact(g.facts, key);
      auto v = f ? std::get_if<std::string>(&f->value) : nullptr;
      return v ? *v : std::string();
    };
    auto number = [&](const char* key) -> std::optional<double> {
      const Fact* f = find_fact(g.facts, key);
      auto v = f ? std::get_if<double>(&f->value) : nullptr;
      return v ? std::optional(*v) : std::nullopt;
    };
    const std::string architecture = text("architecture"), vendor = text("vendor");
    const auto before = CudaVersion::read(text("before_cuda"));
    const auto from = number("from_gb");
    for (Accelerator& a : cards) {
      if (architecture.empty() ? a.vendor != vendor : a.architecture != architecture) continue;
      if (from && a.memory_nominal < gigabytes(*from)) continue;
      if (auto v = number("reserved_mib")) a.memory_reserved = mebibytes(*v);
      const auto context = number("context_mib"), more = number("more_context_mib");
      if (before && context)
        a.older_contexts.push_back({*before, mebibytes(*context)});
      else if (before && more && a.context && a.older_contexts.empty())
        a.older_contexts.push_back({*before, *a.context + mebibytes(*more)});
      else if (context)
        a.context = mebibytes(*context);
    }
  }
}

Result<AcceleratorCatalog> AcceleratorCatalog::from(const FactStore& store) {
  AcceleratorCatalog c;
  for (const FactSheet* s : store.of_kind("accelerator")) {
    auto a = read_accelerator(*s);
    if (!a) return tl::unexpected(a.error());
    c.accelerators_.push_back(std::move(*a));
  }
  read_device_memory(store, c.accelerators_);
  for (const Accelerator& a : c.accelerators_)
    for (const std::string& profile : partition_names(store, a))
      if (auto part = partition_of(store, a, profile)) c.parts_.push_back(std::move(*part));
  for (const Accelerator& a : c.accelerators_) c.keys_.push_back(normalised_name(a.id));
  for (std::size_t i = 0; i < c.keys_.size(); ++i) c.by_key_.emplace_back(c.keys_[i], i);
  std::sort(c.by_key_.begin(), c.by_key_.end());
  if (const FactSheet* s = store.find("aliases", "hardware")) {
    auto t = AliasTable::from(*s);
    if (!t) return tl::unexpected(t.error());
    c.aliases_ = std::move(*t);
  }
  std::map<std::string, std::vector<double>, std::less<>> seen;
  for (const Accelerator& a : c.accelerators_) {
    if (!a.memory_reported) continue;
    double ratio = *a.memory_reported / a.memory_nominal;
    for (const std::string& group : {"family/" + a.family, "vendor/" + a.vendor, std::string()})
      seen[group].push_back(ratio);
  }
  for (auto& [group, list] : seen) {
    std::sort(list.begin(), list.end());
    std::size_t n = list.size();
    double median = n % 2 ? list[n / 2] : (list[n / 2 - 1] + list[n / 2]) / 2;
    c.ratios_[group] = Range{list.front(), median, list.back()};
  }
  return c;
}

const Accelerator* AcceleratorCatalog::by_id(std::string_view id) const {
  auto it = std::lower_bound(accelerators_.begin(), accelerators_.end(), id,
                             [](const Accelerator& a, std::string_view i) { return a.id < i; });
  if (it != accelerators_.end() && it->id == id) return &*it;
  for (const Accelerator& a : parts_)
    if (a.id == id) return &a;
  return nullptr;
}

Result<std::vector<const Accelerator*>> AcceleratorCatalog::resolve_all(
    std::string_view name, std::string_view where) const {
  if (const Accelerator* a = by_id(name)) return std::vector{a};
  std::string key = normalised_name(name);
  auto it = std::lower_bound(by_key_.begin(), by_key_.end(),
                             std::pair<std::string_view, std::size_t>(key, 0));
  if (it != by_key_.end() && it->first == key) return std::vector{&accelerators_[it->second]};
  auto alias = aliases_.find(name);
  if (alias && alias->kind == AliasKind::unknown)
    return fail(ErrorCode::unknown_name,
                message(HardwareMessage::outside_catalogue, name, alias->note), std::string(where));
  std::vector<const Accelerator*> found;
  if (alias && alias->kind == AliasKind::accelerator)
    for (std::string_view id : alias->targets)
      if (const Accelerator* a = by_id(id)) found.push_back(a);
  if (!found.empty()) return found;
  // "a100-80gb:1g.10gb": that part of each card that the name may mean.
  if (const auto colon = name.rfind(':'); colon != name.npos && !alias) {
    const std::string_view profile = name.substr(colon + 1);
    auto whole = resolve_all(name.substr(0, colon), where);
    if (!whole) return whole;
    std::string parts;
    for (const Accelerator* a : *whole)
      for (const Accelerator& part : parts_) {
        if (part.id.substr(0, part.id.rfind(':')) != a->id) continue;
        const std::string own = part.id.substr(a->id.size() + 1);
        if (normalised_name(own) == normalised_name(profile)) found.push_back(&part);
        parts += (parts.empty() ? "" : ", ") + part.id;
      }
    if (!found.empty()) return found;
    if (parts.empty())
      return fail(ErrorCode::unsupported,
                  message(HardwareMessage::does_not_divide, whole->front()->id),
                  std::string(where));
    return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "hardware", name),
                std::string(where), message(BaseMessage::choose_one_of, parts));
  }
  std::optional<Message> hint;
  if (auto near = nearest(name)) hint = message(BaseMessage::nearest_name, *near);
  return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "hardware", name),
              std::string(where), hint);
}

Result<const Accelerator*> AcceleratorCatalog::find(std::string_view name,
                                                    std::string_view where) const {
  auto all = resolve_all(name, where);
  if (!all) return tl::unexpected(all.error());
  if (all->size() == 1) return all->front();
  std::string choices;
  for (const Accelerator* a : *all) choices += (choices.empty() ? "" : ", ") + a->id;
  return fail(ErrorCode::ambiguous_name, message(BaseMessage::ambiguous_name, name, "accelerators"),
              std::string(where), message(BaseMessage::choose_one_of, choices));
}

std::optional<std::string> AcceleratorCatalog::nearest(std::string_view name) const {
  std::vector<std::string_view> ids;
  for (const Accelerator& a : accelerators_) ids.push_back(a.id);
  return nearest_name(name, ids);
}

Range AcceleratorCatalog::usable_memory_reported(const Accelerator& a) const {
  if (a.memory_reported) {
    double v = a.memory_reported->in_base();
    return {v, v, v};
  }
  double nominal = a.memory_nominal.in_base();
  for (const std::string& group : {"family/" + a.family, "vendor/" + a.vendor, std::string()})
    if (auto it = ratios_.find(group); it != ratios_.end())
      return {nominal * it->second.low, nominal * it->second.value, nominal * it->second.high};
  return {nominal, nominal, nominal};
}

// Error correction of GDDR memory takes a sixteenth of it; stacked memory has it beside the data.
// Cards that report so much less than their size have it on as they come.
Range AcceleratorCatalog::program_memory(const Accelerator& a, const CardState& card) const {
  Range r = usable_memory_reported(a);
  if (card.memory) {
    const double v = card.memory->in_base();
    r = {v, v, v};
  } else {
    if (card.ecc && a.memory_type.substr(0, 4) == "gddr") {
      const bool on = r.value < 0.96 * a.memory_nominal.in_base() / 1e9 * kGi;
      const double k = on == *card.ecc ? 1 : *card.ecc ? 15.0 / 16 : 16.0 / 15;
      r = {r.low * k, r.value * k, r.high * k};
    }
    const double kept = a.memory_reserved.in_base();
    r = {r.low - kept, r.value - kept, r.high - kept};
  }
  const double used = card.memory_used.in_base();
  for (double* v : {&r.low, &r.value, &r.high}) *v = std::max(0.0, *v - used);
  return r;
}

}  // namespace trigon
