#pragma once
// Quantities with their dimension in the type. A quantity holds one double in base units
// (bytes, operations, seconds, joules, US dollars, tokens); makers name the unit, so a number
// never enters without one. GB is 1e9 bytes and GiB is 2^30 bytes, everywhere.

#include <compare>
#include <type_traits>

namespace trigon {

// Exponents of the base dimensions. `Ops` counts arithmetic operations (an FMA is two).
template <int B, int O, int S, int J, int U, int T>
struct Dimension {
  static constexpr int bytes = B, ops = O, seconds = S, joules = J, dollars = U, tokens = T;
};

template <class A, class B>
using DimensionProduct =
    Dimension<A::bytes + B::bytes, A::ops + B::ops, A::seconds + B::seconds, A::joules + B::joules,
              A::dollars + B::dollars, A::tokens + B::tokens>;
template <class A, class B>
using DimensionQuotient =
    Dimension<A::bytes - B::bytes, A::ops - B::ops, A::seconds - B::seconds, A::joules - B::joules,
              A::dollars - B::dollars, A::tokens - B::tokens>;
using Dimensionless = Dimension<0, 0, 0, 0, 0, 0>;

template <class D>
class Quantity {
 public:
  using dimension = D;
  constexpr Quantity() = default;
  // The value in base units. Use a named maker instead wherever a unit is known.
  static constexpr Quantity base(double v) {
    Quantity q;
    q.value_ = v;
    return q;
  }
  constexpr double in_base() const { return value_; }
  constexpr double over(Quantity unit) const { return value_ / unit.value_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return base(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return base(a.value_ - b.value_); }
  friend constexpr Quantity operator-(Quantity a) { return base(-a.value_); }
  friend constexpr Quantity operator*(Quantity a, double k) { return base(a.value_ * k); }
  friend constexpr Quantity operator*(double k, Quantity a) { return base(a.value_ * k); }
  friend constexpr Quantity operator/(Quantity a, double k) { return base(a.value_ / k); }
  constexpr Quantity& operator+=(Quantity b) { return value_ += b.value_, *this; }
  constexpr Quantity& operator-=(Quantity b) { return value_ -= b.value_, *this; }

 private:
  double value_ = 0;
};

template <class A, class B>
constexpr auto operator*(Quantity<A> a, Quantity<B> b) {
  using D = DimensionProduct<A, B>;
  if constexpr (std::is_same_v<D, Dimensionless>)
    return a.in_base() * b.in_base();
  else
    return Quantity<D>::base(a.in_base() * b.in_base());
}
template <class A, class B>
constexpr auto operator/(Quantity<A> a, Quantity<B> b) {
  using D = DimensionQuotient<A, B>;
  if constexpr (std::is_same_v<D, Dimensionless>)
    return a.in_base() / b.in_base();
  else
    return Quantity<D>::base(a.in_base() / b.in_base());
}
template <class A>
constexpr auto operator/(double k, Quantity<A> a) {
  return Quantity<DimensionQuotient<Dimensionless, A>>::base(k / a.in_base());
}

using Bytes = Quantity<Dimension<1, 0, 0, 0, 0, 0>>;
using Flops = Quantity<Dimension<0, 1, 0, 0, 0, 0>>;
using Seconds = Quantity<Dimension<0, 0, 1, 0, 0, 0>>;
using Joules = Quantity<Dimension<0, 0, 0, 1, 0, 0>>;
using Dollars = Quantity<Dimension<0, 0, 0, 0, 1, 0>>;
using Tokens = Quantity<Dimension<0, 0, 0, 0, 0, 1>>;
using BytesPerSecond = decltype(Bytes{} / Seconds{});
using FlopsPerSecond = decltype(Flops{} / Seconds{});
using Watts = decltype(Joules{} / Seconds{});
using DollarsPerSecond = decltype(Dollars{} / Seconds{});
using TokensPerSecond = decltype(Tokens{} / Seconds{});
using PerSecond = decltype(1.0 / Seconds{});

constexpr double kKi = 1024.0, kMi = kKi * kKi, kGi = kMi * kKi, kTi = kGi * kKi;

constexpr Bytes bytes(double v) { return Bytes::base(v); }
constexpr Bytes megabytes(double v) { return Bytes::base(v * 1e6); }
constexpr Bytes gigabytes(double v) { return Bytes::base(v * 1e9); }
constexpr Bytes mebibytes(double v) { return Bytes::base(v * kMi); }
constexpr Bytes gibibytes(double v) { return Bytes::base(v * kGi); }
constexpr Flops flops(double v) { return Flops::base(v); }
constexpr Flops teraflops(double v) { return Flops::base(v * 1e12); }
constexpr FlopsPerSecond teraflops_per_second(double v) { return FlopsPerSecond::base(v * 1e12); }
constexpr BytesPerSecond gigabytes_per_second(double v) { return BytesPerSecond::base(v * 1e9); }
constexpr BytesPerSecond gigabits_per_second(double v) { return BytesPerSecond::base(v * 1e9 / 8); }
constexpr Seconds seconds(double v) { return Seconds::base(v); }
constexpr Seconds milliseconds(double v) { return Seconds::base(v * 1e-3); }
constexpr Seconds microseconds(double v) { return Seconds::base(v * 1e-6); }
constexpr Seconds hours(double v) { return Seconds::base(v * 3600); }
constexpr Seconds days(double v) { return Seconds::base(v * 86400); }
constexpr Watts watts(double v) { return Watts::base(v); }
constexpr Joules kilowatt_hours(double v) { return Joules::base(v * 3.6e6); }
constexpr Dollars dollars(double v) { return Dollars::base(v); }
constexpr DollarsPerSecond dollars_per_hour(double v) { return DollarsPerSecond::base(v / 3600); }
constexpr Tokens tokens(double v) { return Tokens::base(v); }

}  // namespace trigon
