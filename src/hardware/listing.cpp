#include "hardware/listing.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "hardware/names.hpp"

namespace trigon {
namespace {

struct Suffix {
  std::string_view text, unit;
};
// Longest first.
constexpr Suffix kSuffixes[] = {
    {"_one_way_gb_per_s_per_accelerator", "GB/s"},
    {"_gbit_per_s_per_node", "Gbit/s"},
    {"_gb_per_s", "GB/s"},
    {"_tflops", "TFLOP/s"},
    {"_tops", "TOP/s"},
    {"_mhz", "MHz"},
    {"_mib", "MiB"},
    {"_mb", "MB"},
    {"_gb", "GB"},
    {"_usd", "USD"},
    {"_years", "years"},
    {"_w", "W"},
};

std::string text_of(const FactValue& v) {
  if (auto b = std::get_if<bool>(&v)) return *b ? "yes" : "no";
  if (auto n = std::get_if<double>(&v)) return write_number(*n);
  if (auto t = std::get_if<std::string>(&v)) return *t;
  std::string out;
  if (auto l = std::get_if<std::vector<double>>(&v))
    for (double n : *l) out += (out.empty() ? "" : ", ") + write_number(n);
  if (auto l = std::get_if<std::vector<std::string>>(&v))
    for (const auto& t : *l) out += (out.empty() ? "" : "; ") + t;
  return out;
}

// Numbers of an accelerator by the key of a condition.
std::optional<double> number_of(const Accelerator& a, std::string_view key) {
  auto peak = [&](std::initializer_list<MathMode> modes) -> std::optional<double> {
    for (MathMode m : modes)
      if (auto p = a.peak_of(m)) return p->in_base();
    return std::nullopt;
  };
  using M = MathMode;
  auto base = [](const auto& q) -> std::optional<double> {
    if (q) return q->in_base();
    return std::nullopt;
  };
  if (key == "mem") return a.memory_nominal.in_base();
  if (key == "bw") return a.memory_bandwidth.in_base();
  if (key == "power") return base(a.board_power);
  if (key == "price") return base(a.launch_price);
  if (key == "link") return a.peer_link.one_way.in_base();
  if (key == "pcie") return base(a.pcie_one_way);
  if (key == "cc") return a.compute_capability;
  if (key == "fp64") return peak({M::fp64_matrix, M::fp64_vector});
  if (key == "fp32") return peak({M::fp32_vector, M::fp32_matrix});
  if (key == "tf32") return peak({M::tf32_matrix});
  if (key == "fp16")
    return peak({M::fp16_matrix_fp32_accumulate, M::fp16_matrix_fp16_accumulate, M::fp16_vector});
  if (key == "bf16") return peak({M::bf16_matrix});
  if (key == "fp8") return peak({M::fp8_matrix});
  if (key == "fp4") return peak({M::fp4_matrix});
  if (key == "int8") return peak({M::int8_matrix, M::int8_vector});
  if (key == "int4") return peak({M::int4_matrix, M::int4_vector});
  return std::nullopt;
}

std::optional<std::string> word_of(const Accelerator& a, std::string_view key) {
  if (key == "vendor") return a.vendor;
  if (key == "family") return a.family;
  if (key == "arch") return a.architecture;
  if (key == "form") return a.form_factor;
  if (key == "gfx") return a.gfx;
  if (key == "launch") return a.launch_date;
  if (key == "topology") return std::string(name_of(a.peer_link.topology));
  if (key == "kind") {
    constexpr const char* names[] = {"gpu", "apu", "cpu", "npu"};
    return names[static_cast<std::size_t>(a.kind)];
  }
  return std::nullopt;
}

bool is_word_key(std::string_view key) {
  for (std::string_view k :
       {"vendor", "family", "arch", "form", "gfx", "launch", "topology", "kind"})
    if (k == key) return true;
  return false;
}

Result<double> parse_value(std::string_view key, std::string_view text, std::string_view where) {
  auto base = [](auto r) -> Result<double> {
    if (!r) return tl::unexpected(r.error());
    return r->in_base();
  };
  if (key == "mem") return base(parse_bytes(text, where));
  if (key == "bw" || key == "link" || key == "pcie") {
    if (auto plain = parse_number(text)) return *plain * 1e9;
    return base(parse_bandwidth(text, where));
  }
  if (key == "power") {
    if (auto plain = parse_number(text)) return *plain;
    return base(parse_watts(text, where));
  }
  if (key == "price") {
    if (auto plain = parse_number(text)) return *plain;
    auto money = parse_money(text, where);
    if (!money) return tl::unexpected(money.error());
    if (auto sum = std::get_if<Dollars>(&*money)) return sum->in_base();
    return fail(ErrorCode::bad_argument, message(BaseMessage::bad_number, text),
                std::string(where));
  }
  auto v = parse_number(text, where);
  if (v && key != "cc") return *v * 1e12;
  return v;
}

template <class T>
bool compare(const T& a, Condition::Op op, const T& b) {
  switch (op) {
    case Condition::Op::equal:
      return a == b;
    case Condition::Op::not_equal:
      return a != b;
    case Condition::Op::less:
      return a < b;
    case Condition::Op::at_most:
      return a <= b;
    case Condition::Op::more:
      return a > b;
    case Condition::Op::at_least:
      return a >= b;
  }
  return false;
}

}  // namespace

std::vector<FactRow> list_facts(const FactSheet& sheet) {
  std::vector<FactRow> out;
  for (const Fact& f : sheet.facts) {
    FactRow r;
    r.id = sheet.fact_id(f.key);
    r.key = f.key;
    for (const Suffix& s : kSuffixes)
      if (f.key.size() > s.text.size() &&
          f.key.compare(f.key.size() - s.text.size(), s.text.size(), s.text) == 0) {
        r.key.resize(f.key.size() - s.text.size());
        r.unit = s.unit;
        break;
      }
    r.value = text_of(f.value);
    r.source = f.source.empty() ? sheet.source : f.source;
    r.date = f.date.empty() ? sheet.date : f.date;
    out.push_back(std::move(r));
  }
  return out;
}

const std::vector<std::string_view>& condition_keys() {
  static const std::vector<std::string_view> keys = {
      "arch", "bf16", "bw",   "cc",    "family", "form", "fp16",     "fp32",
      "fp4",  "fp64", "fp8",  "gfx",   "int4",   "int8", "kind",     "launch",
      "link", "mem",  "pcie", "power", "price",  "tf32", "topology", "vendor"};
  return keys;
}

Result<Condition> parse_condition(std::string_view text, std::string_view where) {
  using Op = Condition::Op;
  auto at = text.find_first_of("<>=!");
  if (at == text.npos || at == 0)
    return fail(ErrorCode::bad_argument, message(HardwareMessage::bad_condition, text),
                std::string(where));
  Condition c;
  c.key = normalised_name(text.substr(0, at));
  std::string_view rest = text.substr(at);
  constexpr std::pair<std::string_view, Op> ops[] = {{"<=", Op::at_most},   {">=", Op::at_least},
                                                     {"!=", Op::not_equal}, {"<", Op::less},
                                                     {">", Op::more},       {"=", Op::equal}};
  bool found = false;
  for (const auto& [sign, op] : ops)
    if (rest.substr(0, sign.size()) == sign) {
      c.op = op;
      rest.remove_prefix(sign.size());
      found = true;
      break;
    }
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (!found || rest.empty())
    return fail(ErrorCode::bad_argument, message(HardwareMessage::bad_condition, text),
                std::string(where));
  const auto& keys = condition_keys();
  if (std::find(keys.begin(), keys.end(), c.key) == keys.end()) {
    std::optional<Message> hint;
    if (auto near = nearest_name(c.key, keys)) hint = message(BaseMessage::nearest_name, *near);
    return fail(ErrorCode::bad_argument, message(BaseMessage::unknown_key, c.key),
                std::string(where), hint);
  }
  if (!is_word_key(c.key)) {
    auto v = parse_value(c.key, rest, where);
    if (!v) return tl::unexpected(v.error());
    c.number = *v;
    return c;
  }
  if (c.key != "launch" && c.op != Op::equal && c.op != Op::not_equal)
    return fail(ErrorCode::bad_argument, message(HardwareMessage::bad_condition, text),
                std::string(where));
  while (true) {
    auto comma = rest.find(',');
    c.words.push_back(c.key == "launch" ? std::string(rest.substr(0, comma))
                                        : normalised_name(rest.substr(0, comma)));
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  return c;
}

bool holds(const Condition& c, const Accelerator& a) {
  if (c.number) {
    auto v = number_of(a, c.key);
    return v && compare(*v, c.op, *c.number);
  }
  auto word = word_of(a, c.key);
  if (!word || word->empty()) return false;
  if (c.key == "launch") {
    // A year or month stands for the whole of it: compare as many characters as were given.
    std::string shown = word->substr(0, c.words[0].size());
    return compare(shown, c.op, c.words[0]);
  }
  std::string key = normalised_name(*word);
  bool any = std::find(c.words.begin(), c.words.end(), key) != c.words.end();
  return any == (c.op == Condition::Op::equal);
}

std::vector<const Accelerator*> select(const AcceleratorCatalog& catalog,
                                       const std::vector<Condition>& conditions) {
  std::vector<const Accelerator*> out;
  // Processors are listed where the kind is asked for.
  const bool any_kind = std::any_of(conditions.begin(), conditions.end(),
                                    [](const Condition& c) { return c.key == "kind"; });
  for (const Accelerator& a : catalog.all())
    if ((any_kind || a.kind != DeviceKind::cpu) &&
        std::all_of(conditions.begin(), conditions.end(),
                    [&](const Condition& c) { return holds(c, a); }))
      out.push_back(&a);
  return out;
}

}  // namespace trigon
