#pragma once
// The accelerators of data/hardware/, by id and by every name that data/aliases.csv knows.

#include <map>

#include "hardware/accelerator.hpp"
#include "hardware/aliases.hpp"
#include "hardware/cluster.hpp"

namespace trigon {

// Makes an accelerator of its sheet. Memory, bandwidth, family and at least one peak must be there.
Result<Accelerator> read_accelerator(const FactSheet& sheet);

class AcceleratorCatalog {
 public:
  AcceleratorCatalog() = default;
  AcceleratorCatalog(AcceleratorCatalog&&) = default;
  AcceleratorCatalog& operator=(AcceleratorCatalog&&) = default;
  AcceleratorCatalog(const AcceleratorCatalog&) = delete;  // others point into it
  AcceleratorCatalog& operator=(const AcceleratorCatalog&) = delete;

  // The store must outlive the catalogue: accelerators point to their sheets.
  static Result<AcceleratorCatalog> from(const FactStore& store);

  const std::vector<Accelerator>& all() const { return accelerators_; }  // sorted by id
  const Accelerator* by_id(std::string_view id) const;
  // Parts of the cards that divide ("a100-sxm-80gb:1g.10gb"): found by name, not among `all`.
  const std::vector<Accelerator>& parts() const { return parts_; }
  // One accelerator by id or alias. An ambiguous name is an error that lists the choices, an
  // unknown one names the nearest id.
  Result<const Accelerator*> find(std::string_view name, std::string_view where = {}) const;
  // As `find`, but an ambiguous name gives all its candidates.
  Result<std::vector<const Accelerator*>> resolve_all(std::string_view name,
                                                      std::string_view where = {}) const;
  std::optional<Alias> alias(std::string_view name) const { return aliases_.find(name); }
  std::optional<std::string> nearest(std::string_view name) const;

  // Bytes that the driver reports as the card's memory. Exact where known; else the nominal size
  // times the ratios reported/nominal seen in its family, or its vendor's cards, or all.
  Range usable_memory_reported(const Accelerator& a) const;
  // What programs of one of its cards find when they start: what is reported, with error
  // correction as the card's facts say, less what the driver keeps and what others use.
  Range program_memory(const Accelerator& a, const CardState& card) const;

 private:
  std::vector<Accelerator> accelerators_;
  std::vector<Accelerator> parts_;
  std::vector<std::string> keys_;  // canonical ids, beside accelerators_
  std::vector<std::pair<std::string_view, std::size_t>> by_key_;  // sorted
  AliasTable aliases_;
  std::map<std::string, Range, std::less<>> ratios_;  // by "family/x", "vendor/x", ""
};

}  // namespace trigon
