#include "values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/units.hpp"
#include "flags.hpp"
#include "model/format.hpp"
#include "model/gguf_file_type.hpp"
#include "plan/plan.hpp"
#include "present/numbers.hpp"

namespace trigon {

Result<LatencyLimit> parse_latency(std::string_view text, std::string_view where) {
  LatencyLimit out;
  auto colon = text.find(':');
  if (colon != text.npos) {
    std::string_view p = text.substr(0, colon);
    auto n = p.empty() || (p[0] != 'p' && p[0] != 'P') ? Result<double>(0)
                                                       : parse_number(p.substr(1), where);
    if (!n || *n < 1 || *n > 99.99)
      return fail(ErrorCode::bad_argument, message(AppMessage::bad_percentile, p),
                  std::string(where), message(BaseMessage::write_one_of, "1s, p50:1s or p99:1s"));
    out.percentile = *n;
    text = text.substr(colon + 1);
  }
  auto time = parse_duration(text, where);
  if (!time) return tl::unexpected(time.error());
  out.at_most = *time;
  return out;
}

Result<ServeLimits> parse_slo(std::string_view text, std::string_view where) {
  ServeLimits out;
  for (std::string_view part : split_words(text, ',')) {
    auto equals = part.find('=');
    std::string_view name = part.substr(0, equals);
    std::optional<LatencyLimit>* limit = name == "ttft"   ? &out.ttft
                                         : name == "tpot" ? &out.tpot
                                         : name == "e2e"  ? &out.e2e
                                                          : nullptr;
    if (!limit || equals == part.npos)
      return fail(ErrorCode::bad_argument, message(AppMessage::bad_slo, part), std::string(where),
                  message(BaseMessage::write_one_of, "ttft=1s,tpot=50ms,e2e=p99:10s"));
    auto value = parse_latency(part.substr(equals + 1), where);
    if (!value) return tl::unexpected(value.error());
    *limit = *value;
  }
  return out;
}

Result<std::string> parse_date(std::string_view text, std::string_view where) {
  auto digits = [&](std::size_t from, std::size_t n) {
    int v = 0;
    for (std::size_t i = from; i < from + n; ++i) {
      if (text[i] < '0' || text[i] > '9') return -1;
      v = v * 10 + (text[i] - '0');
    }
    return v;
  };
  bool good = text.size() == 10 && text[4] == '-' && text[7] == '-';
  if (good) {
    int year = digits(0, 4), month = digits(5, 2), day = digits(8, 2);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    const int lengths[] = {31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    good = year >= 1900 && month >= 1 && month <= 12 && day >= 1 && day <= lengths[month - 1];
  }
  if (!good)
    return fail(ErrorCode::bad_argument, message(AppMessage::bad_date, text), std::string(where),
                message(BaseMessage::write_one_of, "2025-06-30"));
  return std::string(text);
}

namespace {

// "512x768": sizes of at least `least`.
Result<std::vector<std::int64_t>> parse_sizes(std::string_view text, std::string_view where) {
  std::vector<std::int64_t> out;
  while (true) {
    const auto end = text.find_first_of("xX");
    auto n = parse_whole(text.substr(0, end), where);
    if (!n) return tl::unexpected(n.error());
    out.push_back(*n);
    if (end == text.npos) return out;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<std::vector<std::int64_t>> parse_pixels(std::string_view text, std::string_view where) {
  auto sizes = parse_sizes(text, where);
  if (!sizes || sizes->size() > 2)
    return fail(ErrorCode::bad_argument, message(AppMessage::bad_image_size, text),
                std::string(where), message(BaseMessage::write_one_of, "224, 512x768"));
  return sizes;
}

Result<std::vector<float>> parse_shares(std::string_view text, std::string_view where) {
  std::vector<float> out;
  float sum = 0;
  bool good = !text.empty();
  for (std::size_t at = 0; good && at <= text.size();) {
    // Both separators are llama.cpp's.
    const std::size_t end = std::min(text.find_first_of(",/", at), text.size());
    const std::string_view one = text.substr(at, end - at);
    float share = -1;
    const auto [stop, code] = std::from_chars(one.data(), one.data() + one.size(), share);
    good = code == std::errc{} && stop == one.data() + one.size() && std::isfinite(share) &&
           share >= 0 && out.size() < kMostShares;
    out.push_back(share);
    sum += share;
    at = end + 1;
  }
  if (good && sum > 0 && std::isfinite(sum)) return out;
  return fail(ErrorCode::bad_argument, message(AppMessage::bad_shares, text), std::string(where),
              message(AppMessage::shares_are));
}

Result<NamedShapes> parse_shapes(std::string_view text, std::string_view where) {
  NamedShapes out;
  for (std::string_view part : split_words(text, ',')) {
    const auto equals = part.rfind('=');
    auto sizes = equals == part.npos || equals == 0
                     ? Result<std::vector<std::int64_t>>(tl::unexpected(Error{}))
                     : parse_sizes(part.substr(equals + 1), where);
    if (!sizes)
      return fail(ErrorCode::bad_argument, message(AppMessage::bad_shape, part), std::string(where),
                  message(BaseMessage::write_one_of, "--shape input=1x3x224x224"));
    out[std::string(part.substr(0, equals))] = std::move(*sizes);
  }
  return out;
}

namespace {

template <class T>
Result<double> as_number(const Result<T>& r) {
  if (!r) return tl::unexpected(r.error());
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<double>(*r);
  else
    return r->in_base();
}

// The value in base units for what has bounds; 0 for what has none.
Result<double> measured(const Flag& f, std::string_view text, std::string_view where) {
  switch (f.kind) {
    case ValueKind::whole:
      return as_number(parse_whole(text, where));
    case ValueKind::number:
      return as_number(parse_number(text, where));
    case ValueKind::count:
      return as_number(parse_count(text, where));
    case ValueKind::length:
      return as_number(parse_length(text, where));
    case ValueKind::duration:
      return as_number(parse_duration(text, where));
    case ValueKind::rate:
      return as_number(parse_rate(text, where));
    case ValueKind::fraction:
      return as_number(parse_fraction(text, where));
    case ValueKind::size:
      return as_number(parse_bytes(text, where));
    case ValueKind::bandwidth:
      return as_number(parse_bandwidth(text, where));
    case ValueKind::latency: {
      auto r = parse_latency(text, where);
      if (!r) return tl::unexpected(r.error());
      return r->at_most.in_base();
    }
    case ValueKind::money: {
      auto r = parse_money(text, where);
      if (!r) return tl::unexpected(r.error());
      return 0.0;
    }
    case ValueKind::slo: {
      auto r = parse_slo(text, where);
      if (!r) return tl::unexpected(r.error());
      return 0.0;
    }
    case ValueKind::pixels: {
      auto r = parse_pixels(text, where);
      if (!r) return tl::unexpected(r.error());
      // The side that is out of bounds, if any is.
      const auto [least, most] = std::minmax(r->front(), r->back());
      return static_cast<double>(least < 1 ? least : most);
    }
    case ValueKind::shapes: {
      auto r = parse_shapes(text, where);
      if (!r) return tl::unexpected(r.error());
      double most = 1;
      for (const auto& [name, sizes] : *r)
        for (std::int64_t n : sizes) most = std::max(most, static_cast<double>(n));
      return most;
    }
    case ValueKind::date: {
      auto r = parse_date(text, where);
      if (!r) return tl::unexpected(r.error());
      return 0.0;
    }
    default:
      return 0.0;
  }
}

// Formats of one engine, of any number of bits between 2 and 8.
constexpr std::pair<std::string_view, std::string_view> kOwnFormats[] = {{"exl2", "exllama"},
                                                                         {"exl3", "exllama"}};

std::string bound_text(const Flag& f, double v) {
  if (f.kind == ValueKind::duration || f.kind == ValueKind::latency) return in_words(v, "s");
  if (f.kind == ValueKind::rate) return write_number(v) + "/s";
  return v >= 1e7 ? short_count(v) : trimmed_number(v, 6);
}

}  // namespace

Result<void> check_value(const Flag& f, std::string_view text, std::string_view where) {
  if (f.kind == ValueKind::on_off) {
    if (text == "true" || text == "false") return {};
    return fail(ErrorCode::bad_argument,
                message(AppMessage::flag_takes_no_value, "--" + std::string(f.name)),
                std::string(where));
  }
  if (text.empty() && f.kind != ValueKind::optional)
    return fail(ErrorCode::bad_argument,
                message(AppMessage::flag_needs_value, "--" + std::string(f.name)),
                std::string(where));
  if (f.kind == ValueKind::choice) {
    std::vector<std::string_view> choices = split_words(f.value, '|');
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
    std::string list;
    for (std::string_view c : choices) list += (list.empty() ? "" : ", ") + std::string(c);
    return fail(ErrorCode::bad_argument, message(AppMessage::bad_choice, text), std::string(where),
                message(BaseMessage::choose_one_of, list));
  }
  if (f.kind == ValueKind::format) {
    if (format_by_name(text)) return {};
    if (f.name == "quant" && (text == "any" || gguf_base_format(text))) return {};
    for (const auto& [name, engine] : kOwnFormats)
      if (text == name)
        return fail(ErrorCode::unsupported, message(AppMessage::format_not_expressed, name, engine),
                    std::string(where),
                    message(BaseMessage::choose_one_of, "int4, int8, int3, int2"));
    return fail(ErrorCode::unknown_name, message(BaseMessage::unknown_name, "format", text),
                std::string(where),
                message(BaseMessage::choose_one_of, "bf16, fp16, fp8, int8, int4, q4_k, q8_0 ..."));
  }
  auto v = measured(f, text, where);
  if (!v) return tl::unexpected(v.error());
  if (f.low <= f.high && f.kind != ValueKind::money && (*v < f.low || *v > f.high))
    return fail(ErrorCode::bad_argument,
                message(BaseMessage::number_out_of_range, text, bound_text(f, f.low),
                        bound_text(f, f.high)),
                std::string(where));
  return {};
}

}  // namespace trigon
