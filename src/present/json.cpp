#include "present/json.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace trigon {
namespace {

using Text = nlohmann::ordered_json;

Text number(double v) {
  if (!std::isfinite(v)) return nullptr;
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.9g", v);
  double rounded = std::strtod(digits, nullptr);
  // Whole numbers without ".0"; beyond 2^53 a double is not a count any more.
  if (rounded == std::floor(rounded) && std::fabs(rounded) < 9007199254740992.0)
    return static_cast<std::int64_t>(rounded);
  return rounded;
}

Text converted(const JsonNode& j) {
  using Kind = JsonNode::Kind;
  switch (j.kind()) {
    case Kind::null:
      return nullptr;
    case Kind::boolean:
      return j.integer() != 0;
    case Kind::integer:
      return j.integer();
    case Kind::number:
      return number(j.number());
    case Kind::text:
      return j.text();
    case Kind::array: {
      Text out = Text::array();
      for (const JsonNode& e : j.items()) out.push_back(converted(e));
      return out;
    }
    case Kind::object: {
      Text out = Text::object();
      for (std::size_t i = 0; i < j.items().size(); ++i) out[j.keys()[i]] = converted(j.items()[i]);
      return out;
    }
  }
  return nullptr;
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
  return converted(value).dump(2, ' ', false, Text::error_handler_t::replace) + "\n";
}

}  // namespace trigon
