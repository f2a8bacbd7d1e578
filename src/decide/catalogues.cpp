#include "decide/catalogues.hpp"

#include "hardware/checks.hpp"

namespace trigon {

Result<std::unique_ptr<const Catalogues>> Catalogues::load(
    const std::optional<std::filesystem::path>& data) {
  auto facts = data ? FactStore::with_directory(*data) : FactStore::embedded();
  if (!facts) return tl::unexpected(facts.error());
  // The embedded facts were held against physics when they were packed; a user's were not.
  if (data)
    if (auto sound = check_hardware_facts(*facts); !sound) return tl::unexpected(sound.error());
  auto all = std::make_unique<Catalogues>();
  // The catalogues point into the facts, so those move to their final place first.
  all->facts = std::move(*facts);
  auto take = [&](auto result, auto& into) -> std::optional<Error> {
    if (!result) return result.error();
    into = std::move(*result);
    return std::nullopt;
  };
  for (auto failed : {take(HardwareCatalog::from(all->facts), all->hardware),
                      take(SupportTable::from(all->facts), all->support),
                      take(ModelCatalog::from(all->facts), all->models),
                      take(NetworkCatalog::from(all->facts), all->networks),
                      take(EngineCatalog::from(all->facts), all->engines),
                      take(Calibration::load(all->facts), all->calibration),
                      take(PriceBook::from(all->facts), all->prices)})
    if (failed) return tl::unexpected(*failed);
  return std::unique_ptr<const Catalogues>(std::move(all));
}

}  // namespace trigon
