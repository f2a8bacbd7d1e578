#pragma once
// All facts, loaded once and shared by every question.

#include <filesystem>
#include <memory>
#include <optional>

#include "cost/calibration.hpp"
#include "engine/catalog.hpp"
#include "hardware/software.hpp"
#include "hardware/systems.hpp"
#include "market/prices.hpp"
#include "model/model_catalog.hpp"
#include "network/catalog.hpp"

namespace trigon {

struct Catalogues {
  FactStore facts;
  HardwareCatalog hardware;
  SupportTable support;
  ModelCatalog models;
  NetworkCatalog networks;
  EngineCatalog engines;
  Calibration calibration;
  PriceBook prices;

  // The embedded facts, with the sheets of `data` in place of their namesakes; those are held
  // against physics first.
  static Result<std::unique_ptr<const Catalogues>> load(
      const std::optional<std::filesystem::path>& data = std::nullopt);
};

}  // namespace trigon
