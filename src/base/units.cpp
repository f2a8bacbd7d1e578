#include "base/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace trigon {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kCounts[] = {{"", 1},    {"k", 1e3}, {"K", 1e3},  {"M", 1e6}, {"m", 1e6},
                            {"B", 1e9}, {"b", 1e9}, {"T", 1e12}, {"t", 1e12}};
constexpr Unit kSizes[] = {{"B", 1},     {"kB", 1e3},  {"KB", 1e3},  {"MB", 1e6},  {"GB", 1e9},
                           {"TB", 1e12}, {"PB", 1e15}, {"KiB", kKi}, {"kiB", kKi}, {"MiB", kMi},
                           {"GiB", kGi}, {"TiB", kTi}, {"kb", 1e3},  {"mb", 1e6},  {"gb", 1e9},
                           {"tb", 1e12}, {"kib", kKi}, {"mib", kMi}, {"gib", kGi}, {"tib", kTi}};
constexpr Unit kLengths[] = {{"", 1}, {"k", kKi}, {"K", kKi}, {"M", kMi}, {"m", kMi}};
constexpr Unit kTimes[] = {
    {"us", 1e-6},       {"ms", 1e-3},     {"s", 1},          {"sec", 1},      {"second", 1},
    {"seconds", 1},     {"min", 60},      {"minute", 60},    {"minutes", 60}, {"h", 3600},
    {"hour", 3600},     {"hours", 3600},  {"d", 86400},      {"day", 86400},  {"days", 86400},
    {"w", 604800},      {"week", 604800}, {"weeks", 604800}, {"y", 31536000}, {"year", 31536000},
    {"years", 31536000}};
constexpr Unit kPowers[] = {{"W", 1}, {"w", 1}, {"kW", 1e3}, {"kw", 1e3}, {"MW", 1e6}};
constexpr Unit kBandwidths[] = {{"kB/s", 1e3},     {"KB/s", 1e3},     {"MB/s", 1e6},
                                {"GB/s", 1e9},     {"TB/s", 1e12},    {"KiB/s", kKi},
                                {"MiB/s", kMi},    {"GiB/s", kGi},    {"TiB/s", kTi},
                                {"Mb/s", 1e6 / 8}, {"Gb/s", 1e9 / 8}, {"Tb/s", 1e12 / 8},
                                {"Mbps", 1e6 / 8}, {"Gbps", 1e9 / 8}, {"Tbps", 1e12 / 8}};
constexpr Unit kPeriods[] = {{"s", 1},
                             {"min", 60},
                             {"h", 3600},
                             {"hour", 3600},
                             {"d", 86400},
                             {"day", 86400},
                             {"month", kHoursPerMonth * 3600},
                             {"y", 31536000},
                             {"year", 31536000}};
constexpr Unit kDollars[] = {{"USD", 1}, {"kUSD", 1e3}, {"MUSD", 1e6}};

template <std::size_t N>
const Unit* find_unit(const Unit (&units)[N], std::string_view name) {
  for (const Unit& u : units)
    if (u.name == name) return &u;
  return nullptr;
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

tl::unexpected<Error> bad_number(std::string_view text, std::string_view where) {
  return fail(ErrorCode::bad_argument, message(BaseMessage::bad_number, text), std::string(where));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "2,5d" is 2.5d where a comma separates decimals, "46,900" is 46900 where it separates thousands.
std::string without_commas(std::string_view text) {
  std::string thousands, decimal(text);
  bool groups = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ',') {
      thousands += text[i];
      continue;
    }
    std::size_t n = 0;
    while (i + 1 + n < text.size() && is_digit(text[i + 1 + n])) ++n;
    groups = groups && n == 3;
  }
  const auto comma = text.find(',');
  if (text.find(',', comma + 1) != std::string_view::npos) return thousands;
  decimal[comma] = '.';
  return groups ? thousands + " or " + decimal : decimal;
}

tl::unexpected<Error> bad_unit(std::string_view text, std::string_view unit, std::string_view where,
                               std::string choices) {
  const auto comma = text.find(',');
  if (!unit.empty() && unit[0] == ',' && comma + 1 < text.size() && is_digit(text[comma + 1]))
    return fail(ErrorCode::bad_argument, message(BaseMessage::bad_number, text), std::string(where),
                message(BaseMessage::write_one_of, without_commas(trimmed(text))));
  Message what = unit.empty() ? message(BaseMessage::missing_unit, text)
                              : message(BaseMessage::unknown_unit, text, unit);
  return fail(ErrorCode::bad_argument, std::move(what), std::string(where),
              message(BaseMessage::write_one_of, choices));
}

struct Split {
  double number;
  std::string_view digits, rest;
};

// The leading number and what follows it. An exponent counts only when digits follow the e.
Result<Split> split_number(std::string_view text, std::string_view where) {
  std::string_view s = trimmed(text);
  if (s.empty() || !((s[0] >= '0' && s[0] <= '9') || s[0] == '.')) return bad_number(text, where);
  double v = 0;
  auto r = std::from_chars(s.data(), s.data() + s.size(), v, std::chars_format::general);
  if (r.ec != std::errc() || !std::isfinite(v)) return bad_number(text, where);
  auto n = static_cast<std::size_t>(r.ptr - s.data());
  return Split{v, s.substr(0, n), trimmed(s.substr(n))};
}

template <class Q, std::size_t N>
Result<Q> parse_with(const Unit (&units)[N], std::string_view text, std::string_view where,
                     const char* example) {
  auto p = split_number(text, where);
  if (!p) return tl::unexpected(p.error());
  const Unit* u = find_unit(units, p->rest);
  if (!u) return bad_unit(text, p->rest, where, std::string(p->digits) + example);
  double v = p->number * u->factor;
  if (!std::isfinite(v)) return bad_number(text, where);
  if constexpr (std::is_same_v<Q, double>)
    return v;
  else
    return Q::base(v);
}

bool is_whole(double v) { return v == std::floor(v) && v <= 9007199254740992.0; }

}  // namespace

Result<double> parse_number(std::string_view text, std::string_view where) {
  auto p = split_number(text, where);
  if (!p) return tl::unexpected(p.error());
  if (!p->rest.empty()) return bad_number(text, where);
  return p->number;
}

Result<std::int64_t> parse_whole(std::string_view text, std::string_view where) {
  auto v = parse_number(text, where);
  if (!v) return tl::unexpected(v.error());
  if (!is_whole(*v)) return bad_number(text, where);
  return static_cast<std::int64_t>(*v);
}

Result<double> parse_count(std::string_view text, std::string_view where) {
  return parse_with<double>(kCounts, text, where, "k, M, B or T");
}

Result<Bytes> parse_bytes(std::string_view text, std::string_view where) {
  auto p = split_number(text, where);
  if (!p) return tl::unexpected(p.error());
  if (const Unit* u = find_unit(kSizes, p->rest)) {
    double v = p->number * u->factor;
    if (!std::isfinite(v)) return bad_number(text, where);
    return bytes(v);
  }
  std::string digits(p->digits);
  if (p->rest.size() == 1) {
    char prefix = p->rest[0] >= 'a' ? static_cast<char>(p->rest[0] - 'a' + 'A') : p->rest[0];
    if (std::string_view("KMGTP").find(prefix) != std::string_view::npos) {
      std::string decimal = digits + (prefix == 'K' ? 'k' : prefix) + "B";
      std::string binary = digits + prefix + "iB";
      return fail(ErrorCode::bad_argument, message(BaseMessage::ambiguous_size, text),
                  std::string(where),
                  message(BaseMessage::write_one_of, decimal + " or " + binary));
    }
  }
  return bad_unit(text, p->rest, where, digits + "GB or " + digits + "GiB");
}

Result<std::int64_t> parse_length(std::string_view text, std::string_view where) {
  auto v = parse_with<double>(kLengths, text, where, " or with k (1024) or M");
  if (!v) return tl::unexpected(v.error());
  if (!is_whole(*v)) return bad_number(text, where);
  return static_cast<std::int64_t>(*v);
}

Result<Seconds> parse_duration(std::string_view text, std::string_view where) {
  double total = 0;
  std::string_view rest = trimmed(text);
  do {
    auto p = split_number(rest, where);
    if (!p) return bad_number(text, where);
    std::size_t n = 0;
    while (n < p->rest.size() && p->rest[n] != ' ' && p->rest[n] != '.' &&
           !(p->rest[n] >= '0' && p->rest[n] <= '9'))
      ++n;
    std::string_view name = p->rest.substr(0, n);
    const Unit* u = find_unit(kTimes, name);
    if (!u) {
      std::string d(p->digits);
      return bad_unit(text, name, where, d + "s, " + d + "min, " + d + "h or " + d + "d");
    }
    total += p->number * u->factor;
    rest = trimmed(p->rest.substr(n));
  } while (!rest.empty());
  if (!std::isfinite(total)) return bad_number(text, where);
  return seconds(total);
}

Result<PerSecond> parse_rate(std::string_view text, std::string_view where) {
  auto slash = text.find('/');
  if (slash == text.npos) {
    auto n = parse_count(text, where);
    if (!n) return tl::unexpected(n.error());
    std::string t(trimmed(text));
    return bad_unit(text, "", where, t + "/s, " + t + "/min or " + t + "/h");
  }
  auto n = parse_count(text.substr(0, slash), where);
  if (!n) return tl::unexpected(n.error());
  std::string_view period = trimmed(text.substr(slash + 1));
  const Unit* u = find_unit(kPeriods, period);
  if (!u) {
    std::string t(trimmed(text.substr(0, slash)));
    return bad_unit(text, period, where, t + "/s, " + t + "/min or " + t + "/h");
  }
  return PerSecond::base(*n / u->factor);
}

Result<BytesPerSecond> parse_bandwidth(std::string_view text, std::string_view where) {
  return parse_with<BytesPerSecond>(kBandwidths, text, where, "GB/s (bytes) or Gb/s (bits)");
}

Result<Watts> parse_watts(std::string_view text, std::string_view where) {
  return parse_with<Watts>(kPowers, text, where, "W or kW");
}

Result<double> parse_fraction(std::string_view text, std::string_view where) {
  constexpr Unit units[] = {{"", 1}, {"%", 0.01}};
  auto v = parse_with<double>(units, text, where, "%");
  if (!v) return v;
  if (*v > 1)
    return fail(ErrorCode::bad_argument, message(BaseMessage::number_out_of_range, text, "0", "1"),
                std::string(where));
  return v;
}

Result<Money> parse_money(std::string_view text, std::string_view where) {
  auto slash = text.find('/');
  auto sum = parse_with<Dollars>(kDollars, text.substr(0, slash), where, "USD");
  if (!sum) return tl::unexpected(sum.error());
  if (slash == text.npos) return Money(*sum);
  std::string_view period = trimmed(text.substr(slash + 1));
  const Unit* u = find_unit(kPeriods, period);
  if (!u) {
    std::string s(trimmed(text.substr(0, slash)));
    return bad_unit(text, period, where, s + ", " + s + "/h or " + s + "/month");
  }
  return Money(DollarsPerSecond::base(sum->in_base() / u->factor));
}

std::string write_number(double v) {
  char buffer[64];
  double size = std::fabs(v);
  auto r = v == 0 || (size >= 1e-4 && size < 1e15)
               ? std::to_chars(buffer, buffer + sizeof buffer, v, std::chars_format::fixed)
               : std::to_chars(buffer, buffer + sizeof buffer, v);
  return std::string(buffer, r.ptr);
}

namespace {

// The shortest text among those that read back exactly and are not a fraction of their unit.
template <std::size_t N>
std::string write_with(double v, const Unit (&units)[N]) {
  std::string best;
  for (const Unit& u : units) {
    double scaled = v / u.factor;
    if (scaled * u.factor != v || (v != 0 && scaled < 1 && u.factor != 1)) continue;
    std::string s = write_number(scaled) + std::string(u.name);
    if (best.empty() || s.size() < best.size()) best = std::move(s);
  }
  return best;  // every table ends in the base unit, which is always exact
}

}  // namespace

std::string write_count(double v) {
  constexpr Unit units[] = {{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}};
  return write_with(v, units);
}
std::string write_bytes(Bytes v) {
  constexpr Unit units[] = {{"TB", 1e12}, {"GB", 1e9},  {"MB", 1e6},  {"kB", 1e3}, {"TiB", kTi},
                            {"GiB", kGi}, {"MiB", kMi}, {"KiB", kKi}, {"B", 1}};
  return write_with(v.in_base(), units);
}
std::string write_length(std::int64_t v) {
  constexpr std::int64_t k = 1024;
  if (v != 0 && v % (k * k) == 0) return std::to_string(v / (k * k)) + "M";
  if (v != 0 && v % k == 0) return std::to_string(v / k) + "k";
  return std::to_string(v);
}
std::string write_duration(Seconds v) {
  constexpr Unit units[] = {{"d", 86400}, {"h", 3600},  {"min", 60}, {"s", 1},
                            {"ms", 1e-3}, {"us", 1e-6}, {"s", 1}};
  return write_with(v.in_base(), units);
}
std::string write_rate(PerSecond v) {
  constexpr double periods[] = {1, 60, 3600, 86400};
  constexpr const char* names[] = {"/s", "/min", "/h", "/d"};
  std::string best;
  for (std::size_t i = 0; i < 4; ++i) {
    double n = v.in_base() * periods[i];
    if (n / periods[i] != v.in_base()) continue;
    std::string s = write_number(n) + names[i];
    if (best.empty() || s.size() < best.size()) best = std::move(s);
  }
  return best;
}
std::string write_watts(Watts v) {
  constexpr Unit units[] = {{"kW", 1e3}, {"W", 1}};
  return write_with(v.in_base(), units);
}
std::string write_money(Money v) {
  if (auto sum = std::get_if<Dollars>(&v)) return write_number(sum->in_base()) + "USD";
  double rate = std::get<DollarsPerSecond>(v).in_base();
  std::string best;
  for (const Unit& u : {Unit{"/h", 3600}, Unit{"/month", kHoursPerMonth * 3600}, Unit{"/s", 1}}) {
    double n = rate * u.factor;
    if (n / u.factor != rate) continue;
    std::string s = write_number(n) + "USD" + std::string(u.name);
    if (best.empty() || s.size() < best.size()) best = std::move(s);
  }
  return best;
}

}  // namespace trigon
