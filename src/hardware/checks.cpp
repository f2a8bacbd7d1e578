#include "hardware/checks.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/units.hpp"
#include "hardware/systems.hpp"

namespace trigon {
namespace {

class Checker {
 public:
  Checker(const FactStore& store, std::vector<Error>& out) : store_(store), out_(out) {}

  void accelerator(const FactSheet& s) {
    auto read = read_accelerator(s);
    if (!read) {
      out_.push_back(read.error());
      return;
    }
    ranges(s);
    peaks_against_rates(s);
    order_of_peaks(s, *read);
    link(s);
    memory(s, *read);
  }

  void system(const FactSheet& s) {
    auto id = s.text("accelerator");
    const FactSheet* a = id ? store_.find("accelerator", *id) : nullptr;
    if (!a) {
      report(s, "accelerator",
             message(HardwareMessage::unknown_reference, name(s), "accelerator", id.value_or("")));
      return;
    }
    // A node cannot move more between its accelerators than the accelerators themselves.
    auto node = s.number("intra.one_way_gb_per_s");
    auto own = a->number("link.one_way_gb_per_s");
    auto pcie = a->number("pcie.one_way_gb_per_s");
    if (node && (own || pcie)) {
      double most = std::max(own.value_or(0), pcie.value_or(0));
      if (*node > most * 1.02)
        contradict(s, "intra.one_way_gb_per_s", *node, "link of " + a->id, write_number(most));
    }
    range(s, "count", 1, 100000);
    range(s, "power_w", 50, 1e6);
    range(s, "host.ram_gb", 1, 1e5);
  }

  void named_link(const FactSheet& s) { range(s, "one_way_gb_per_s", 0.01, 1e5); }

 private:
  static std::string name(const FactSheet& s) { return s.kind + "/" + s.id; }

  void report(const FactSheet& s, std::string_view key, Message m) {
    out_.push_back(Error{ErrorCode::malformed, std::move(m), s.fact_id(key), std::nullopt});
  }

  void contradict(const FactSheet& s, std::string_view key, double value, std::string_view other,
                  const std::string& text) {
    report(
        s, key,
        message(HardwareMessage::facts_contradict, name(s), key, write_number(value), other, text));
  }

  void range(const FactSheet& s, std::string_view key, double low, double high) {
    auto v = s.number(key);
    if (v && (*v < low || *v > high))
      report(s, key,
             message(HardwareMessage::fact_out_of_range, name(s), key, write_number(*v),
                     write_number(low), write_number(high)));
  }

  // What no device on or announced for the market reaches.
  void ranges(const FactSheet& s) {
    const bool processor = s.text("device_kind").value_or("") == "cpu";
    range(s, "memory.nominal_gb", 1, processor ? 16384 : 2000);
    range(s, "memory.bandwidth_gb_per_s", processor ? 5 : 20, 40000);
    range(s, "units", 1, 1000);
    range(s, "boost_mhz", 300, processor ? 7000 : 5000);
    range(s, "base_mhz", 300, 7000);
    range(s, "board_power_w", 3, 5000);
    range(s, "mig_max_instances", 1, 16);
    range(s, "pcie.generation", 1, 7);
    for (std::size_t i = 0; i < kMathModes; ++i)
      range(s, peak_key(static_cast<MathMode>(i)), 0.01, 200000);
  }

  void peaks_against_rates(const FactSheet& s) {
    const FactSheet* family = store_.find("family", s.text("family").value_or(""));
    auto units = s.number("units"), clock = s.number("boost_mhz");
    // Processors: the clock that all cores keep.
    if (auto kept = s.number("sustained_mhz")) clock = kept;
    if (!family || !units || !clock) return;
    double low = family->number("matrix_clock.low").value_or(0.97);
    double high = family->number("matrix_clock.high").value_or(1.03);
    for (std::size_t i = 0; i < kMathModes; ++i) {
      auto mode = static_cast<MathMode>(i);
      auto rate = family->number("rate." + std::string(name_of(mode)));
      auto peak = s.number(peak_key(mode));
      if (!rate || !peak) continue;
      bool vector_unit = name_of(mode).find("vector") != std::string_view::npos;
      double at_boost = *units * *rate * *clock * 1e6 / 1e12;
      double least = at_boost * (vector_unit ? 0.97 : low);
      double most = at_boost * (vector_unit ? 1.03 : high);
      if (*peak < least || *peak > most)
        report(s, peak_key(mode),
               message(HardwareMessage::peak_contradicts_rates, name(s), peak_key(mode),
                       write_number(*peak), rounded(least) + " to " + rounded(most)));
    }
  }

  static std::string rounded(double v) { return write_number(std::round(v * 10) / 10); }

  // a is not faster than b.
  void not_faster(const FactSheet& s, const Accelerator& a, MathMode slow, MathMode fast) {
    auto x = a.peak_of(slow), y = a.peak_of(fast);
    if (x && y && x->in_base() > y->in_base() * 1.01)
      contradict(s, peak_key(slow), x->in_base() / 1e12, peak_key(fast),
                 write_number(y->in_base() / 1e12));
  }

  void order_of_peaks(const FactSheet& s, const Accelerator& a) {
    using M = MathMode;
    // Wider accumulation and wider operands never gain speed; a matrix unit that is slower than the
    // vector unit would not be used.
    const std::pair<M, M> pairs[] = {
        {M::fp16_matrix_fp32_accumulate, M::fp16_matrix_fp16_accumulate},
        {M::tf32_matrix, M::fp16_matrix_fp32_accumulate},
        {M::tf32_matrix, M::bf16_matrix},
        {M::bf16_matrix, M::fp8_matrix},
        {M::fp16_matrix_fp32_accumulate, M::fp8_matrix},
        {M::fp8_matrix, M::fp8_matrix_fp16_accumulate},
        {M::fp8_matrix, M::fp4_matrix},
        {M::int8_matrix, M::int4_matrix},
        {M::int8_vector, M::int4_vector},
        {M::bf16_vector, M::int8_vector},
        {M::fp64_vector, M::fp64_matrix},
        {M::fp32_vector, M::fp32_matrix},
        {M::fp16_vector, M::fp16_matrix_fp32_accumulate},
        {M::fp64_vector, M::fp32_vector},
    };
    for (auto [slow, fast] : pairs) not_faster(s, a, slow, fast);
  }

  void link(const FactSheet& s) {
    auto one = s.number("link.one_way_gb_per_s"), both = s.number("link.both_ways_gb_per_s");
    if (one && both && (*one > *both || *one * 2 < *both * 0.99 || *one * 2 > *both * 1.01))
      contradict(s, "link.one_way_gb_per_s", *one, "link.both_ways_gb_per_s", write_number(*both));
    auto topology = s.text("link.topology");
    if (topology == "none" && (one || both))
      contradict(s, one ? "link.one_way_gb_per_s" : "link.both_ways_gb_per_s", one ? *one : *both,
                 "link.topology", "none");
    auto memory = s.number("memory.bandwidth_gb_per_s");
    if (one && memory && *one > *memory)
      contradict(s, "link.one_way_gb_per_s", *one, "memory.bandwidth_gb_per_s",
                 write_number(*memory));
    // PCIe: 8, 16, 32, 64 GT/s a lane and direction from the third generation on.
    auto generation = s.number("pcie.generation"), lanes = s.number("pcie.lanes"),
         pcie = s.number("pcie.one_way_gb_per_s");
    if (generation && lanes && pcie && *generation >= 3 && *generation <= 6) {
      double raw = *lanes * static_cast<double>(1 << static_cast<int>(*generation - 3));
      if (*pcie > raw || *pcie < raw * 0.9)
        contradict(s, "pcie.one_way_gb_per_s", *pcie, "lanes at the generation's rate",
                   write_number(raw));
    }
  }

  void memory(const FactSheet& s, const Accelerator& a) {
    if (!a.memory_reported) return;
    // Brochures say GB and mean anything from 1e9 to 2^30 bytes, less what firmware and ECC keep.
    double ratio = *a.memory_reported / a.memory_nominal;
    if (ratio < 0.9 || ratio > kGi / 1e9 * 1.001)
      contradict(s, "memory.reported_mib", *s.number("memory.reported_mib"), "memory.nominal_gb",
                 write_number(*s.number("memory.nominal_gb")));
  }

  const FactStore& store_;
  std::vector<Error>& out_;
};

}  // namespace

std::vector<Error> hardware_contradictions(const FactStore& store) {
  std::vector<Error> out;
  Checker check(store, out);
  for (const FactSheet* s : store.of_kind("accelerator")) check.accelerator(*s);
  for (const FactSheet* s : store.of_kind("system")) check.system(*s);
  for (const FactSheet* s : store.of_kind("link")) check.named_link(*s);
  if (!out.empty()) return out;
  // What is left shows when the catalogue is made: aliases, references, missing facts.
  auto catalog = HardwareCatalog::from(store);
  if (!catalog) {
    out.push_back(catalog.error());
    return out;
  }
  const FactSheet* aliases = store.find("aliases", "hardware");
  if (!aliases) return out;
  for (const std::string& row : aliases->texts("rows")) {
    auto alias = catalog->accelerators.alias(row.substr(0, row.find('|')));
    if (!alias) continue;
    for (std::string_view target : alias->targets) {
      const char* kind = alias->kind == AliasKind::system ? "system" : "accelerator";
      if (alias->kind != AliasKind::unknown && !store.find(kind, target) &&
          !catalog->accelerators.by_id(target))
        out.push_back(
            Error{ErrorCode::malformed,
                  message(HardwareMessage::unknown_reference, "aliases", alias->key, target),
                  aliases->where, std::nullopt});
    }
  }
  return out;
}

Result<void> check_hardware_facts(const FactStore& store) {
  auto all = hardware_contradictions(store);
  if (!all.empty()) return tl::unexpected(std::move(all.front()));
  return {};
}

}  // namespace trigon
