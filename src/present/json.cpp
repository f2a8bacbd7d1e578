#include "present/json.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace trigon {
namespace {

// The library's own number writer sometimes needs 17 digits for a value that 9 describe, so numbers
// are written here; the library escapes the texts.
std::string number(double v) {
  if (!std::isfinite(v)) return "null";
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.9g", v);
  double rounded = std::strtod(digits, nullptr);
  // Whole numbers without an exponent; beyond 2^53 a double is not a count any more.
  if (rounded == std::floor(rounded) && std::fabs(rounded) < 9007199254740992.0)
    return std::to_string(static_cast<std::int64_t>(rounded));
  return digits;
}

std::string quoted(const std::string& text) {
  using Text = nlohmann::ordered_json;
  return Text(text).dump(-1, ' ', false, Text::error_handler_t::replace);
}

void write(const JsonNode& j, std::size_t depth, std::string& out) {
  using Kind = JsonNode::Kind;
  bool object = j.kind() == Kind::object;
  switch (j.kind()) {
    case Kind::null:
      out += "null";
      return;
    case Kind::boolean:
      out += j.integer() ? "true" : "false";
      return;
    case Kind::integer:
      out += std::to_string(j.integer());
      return;
    case Kind::number:
      out += number(j.number());
      return;
    case Kind::text:
      out += quoted(j.text());
      return;
    case Kind::array:
    case Kind::object:
      break;
  }
  if (j.items().empty()) {
    out += object ? "{}" : "[]";
    return;
  }
  out += object ? "{" : "[";
  for (std::size_t i = 0; i < j.items().size(); ++i) {
    out += i ? ",\n" : "\n";
    out += std::string(2 * (depth + 1), ' ');
    if (object) out += quoted(j.keys()[i]) + ": ";
    write(j.items()[i], depth + 1, out);
  }
  out += "\n" + std::string(2 * depth, ' ') + (object ? "}" : "]");
}

}  // namespace

JsonNode json_of(const Estimate<double>& e) {
  return JsonNode::object()
      .set("value", e.value)
      .set("low", e.low)
      .set("high", e.high)
      .set("basis", basis_name(e.basis));
}

std::string_view basis_name(Basis b) {
  switch (b) {
    case Basis::exact:
      return "exact";
    case Basis::measured:
      return "measured";
    case Basis::interpolated:
      return "interpolated";
    case Basis::calibrated:
      return "calibrated";
    case Basis::analytic:
      return "analytic";
    case Basis::bound:
      return "bound";
  }
  return "";
}

std::string write_json(const JsonNode& value) {
  std::string out;
  write(value, 0, out);
  return out + "\n";
}

}  // namespace trigon
