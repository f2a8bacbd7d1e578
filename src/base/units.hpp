#pragma once
// Numbers with units as people write them, and back. Parsers read the whole text, accept no sign,
// no infinity and no NaN, and say in the error what would have been accepted. `where` is the flag
// or place that the text came from. Writers give a text that parses back to the same value (it is
// what "copy as command" prints); rounded numbers for reading are made by `present`.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/quantity.hpp"
#include "base/result.hpp"

namespace trigon {

// A plain non-negative decimal number: "2", "0.5", "1e6".
Result<double> parse_number(std::string_view text, std::string_view where = {});
// A non-negative whole number without a suffix: cards, layers, tries.
Result<std::int64_t> parse_whole(std::string_view text, std::string_view where = {});
// Things counted in thousands: k, M, B, T are powers of 1000. "300B" tokens is 3e11.
Result<double> parse_count(std::string_view text, std::string_view where = {});
// Sizes need B or iB: "80GB" is 80e9, "80GiB" is 80 * 2^30. "80G" and "80" are errors that offer
// both readings. Gb would be bits and is refused.
Result<Bytes> parse_bytes(std::string_view text, std::string_view where = {});
// Lengths in tokens: k is 1024 and M is 1024^2, as context lengths are named. "32k" is 32,768.
Result<std::int64_t> parse_length(std::string_view text, std::string_view where = {});
// us, ms, s, min, h, d, w, y (365 d); several may follow each other: "1h30min". "m" is refused
// (minutes or months).
Result<Seconds> parse_duration(std::string_view text, std::string_view where = {});
// A count per s, min, h or d: "20/s", "1.5k/min".
Result<PerSecond> parse_rate(std::string_view text, std::string_view where = {});
// A bandwidth: "900GB/s", "400Gb/s" (bits), "3.35TB/s".
Result<BytesPerSecond> parse_bandwidth(std::string_view text, std::string_view where = {});
// "350W", "1.2kW".
Result<Watts> parse_watts(std::string_view text, std::string_view where = {});
// "0.9" or "90%": between 0 and 1.
Result<double> parse_fraction(std::string_view text, std::string_view where = {});

// A sum once, or a rate of spending.
using Money = std::variant<Dollars, DollarsPerSecond>;
// "1500USD", "10USD/h", "2000USD/month" (a month is 730 h); k and M may precede USD.
Result<Money> parse_money(std::string_view text, std::string_view where = {});

constexpr double kHoursPerMonth = 730.0;  // 8,760 h / 12, as cloud providers bill

// The shortest decimal text that reads back as the same double, never in scientific notation
// between 1e-4 and 1e15.
std::string write_number(double v);
std::string write_count(double v);
std::string write_bytes(Bytes v);
std::string write_length(std::int64_t v);
std::string write_duration(Seconds v);
std::string write_rate(PerSecond v);
std::string write_watts(Watts v);
std::string write_money(Money v);

}  // namespace trigon
