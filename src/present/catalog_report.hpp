#pragma once
// Facts with their sources: one sheet in full, or many in a table.

#include "hardware/accelerator.hpp"
#include "market/prices.hpp"
#include "present/job_text.hpp"

namespace trigon {

std::string sheet_text(const FactSheet& sheet, const TextStyle& style);
JsonNode sheet_json(const FactSheet& sheet);

// `total`: how many the catalogue has, before any condition.
std::string accelerators_text(const std::vector<const Accelerator*>& shown, std::size_t total,
                              const TextStyle& style);
// Sheets of any kind with some of their facts as columns.
std::string sheets_text(const std::vector<const FactSheet*>& shown, std::size_t total,
                        const std::vector<std::string>& keys, const TextStyle& style);

// What one card costs.
struct CardPrices {
  const Accelerator* accelerator = nullptr;
  std::optional<RentQuote> rent, spot;
  std::optional<PurchaseQuote> buy;
};
std::string prices_text(const std::vector<CardPrices>& cards, const std::string& as_of,
                        const TextStyle& style);
JsonNode prices_json(const std::vector<CardPrices>& cards);
// Every offer for one card, with its source.
std::string offers_text(const CardPrices& card, const std::vector<const PriceRow*>& offers,
                        const TextStyle& style);
JsonNode offers_json(const std::vector<const PriceRow*>& offers);

}  // namespace trigon
