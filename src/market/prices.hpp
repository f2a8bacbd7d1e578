#pragma once
// What accelerators cost to rent and to buy: the price sheets of data/prices/, and the hourly cost
// of owning one. Prices are per accelerator. A price of a machine without its accelerator is never
// in the sheets.

#include <optional>
#include <string>
#include <vector>

#include "base/estimate.hpp"
#include "base/facts.hpp"
#include "hardware/accelerator.hpp"
#include "market/messages.hpp"

namespace trigon {

enum class PriceKind : std::uint8_t { on_demand, spot, reserved, marketplace, purchase };
std::string_view name_of(PriceKind k);

// One offer as found.
struct PriceRow {
  std::string_view accelerators;  // ids separated by commas; several when the offer does not say
  PriceKind kind = PriceKind::on_demand;
  double usd = 0;    // per accelerator and hour; per accelerator for purchase
  double count = 1;  // accelerators of the offer; below 1 for a share of one
  std::string_view region;
  std::string_view date;          // ISO, may be partial or empty
  bool accelerator_only = false;  // the machine around it costs extra
  std::string_view instance;
  std::string_view provider;
  const FactSheet* sheet = nullptr;

  bool names(std::string_view id) const;
  bool exact() const { return accelerators.find(',') == accelerators.npos; }
};

// The spread of the offers for one accelerator: the median of the providers' medians, and the
// cheapest and dearest provider.
template <class Q>
struct PriceQuote {
  Estimate<Q> price;  // basis: measured
  int offers = 0;
  std::vector<std::string> providers;  // sorted
  std::string newest, oldest;          // dates; empty when none is dated
  std::optional<int> age_days;         // of the newest, against the date asked for
  bool old = false;                    // more than a year, or undated
  std::vector<Message> notes;          // what a reader should know about these offers
};
using RentQuote = PriceQuote<DollarsPerSecond>;
using PurchaseQuote = PriceQuote<Dollars>;

class PriceBook {
 public:
  // The store must outlive the book.
  static Result<PriceBook> from(const FactStore& store);

  const std::vector<PriceRow>& rows() const { return rows_; }
  // The newest date of any price: what `as_of` is when nobody says.
  const std::string& snapshot_date() const { return snapshot_; }

  // Offers dated after `as_of` do not count. Among the rest those of the 18 months before it are
  // taken where there are any, offers that name exactly this card before those that may mean
  // another, whole machines before bare accelerators.
  std::optional<RentQuote> rent(const Accelerator& a, PriceKind kind,
                                std::string_view as_of = {}) const;
  // Purchase offers; launch prices are all there is for most cards, which `notes` then says.
  std::optional<PurchaseQuote> buy(const Accelerator& a, std::string_view as_of = {}) const;

 private:
  std::vector<const PriceRow*> offers(const Accelerator& a, PriceKind kind,
                                      std::string_view as_of) const;
  std::vector<PriceRow> rows_;
  std::string snapshot_;
};

// Days since 1970-01-01 of an ISO date; a missing month or day counts as the middle of its span.
std::optional<int> day_number(std::string_view iso_date);

// What owning one accelerator costs for each hour it works: the price spread over the hours it
// works in its life, and the electricity of a working hour with the building's overhead.
struct Ownership {
  Dollars price{};
  double service_years = 0;
  Watts power{};   // of the accelerator and its share of the machine, while working
  double pue = 1;  // building power over machine power, >= 1
  Dollars per_kilowatt_hour{};
  double utilisation = 1;  // share of the hours that it works, 0 to 1
};
DollarsPerSecond hourly_cost_of_ownership(const Ownership& o);

// Averages to start from, each with its source in the sheet; every one can be overridden.
struct OwnershipDefaults {
  double pue = 0, service_years = 0;
  Dollars per_kilowatt_hour{};
  const FactSheet* sheet = nullptr;
};
Result<OwnershipDefaults> ownership_defaults(const FactStore& store);

}  // namespace trigon
