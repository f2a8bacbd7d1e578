#pragma once
// The engines of data/engines/, by name, version and date.
//
// A sheet holds the facts that every version shares and a list [[entry]], oldest first: each entry
// gives `since` (a version), `since_date`, its own `source`, and the facts that changed then. A
// version selects the entries up to it, a blank version those up to the date.

#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/policy.hpp"
#include "hardware/accelerator.hpp"
#include "model/model.hpp"

namespace trigon {

// What an engine is asked for; mirrors JobKind, which belongs to a later room.
enum class EngineTask : std::uint8_t { serve, batch, train, finetune };

class EngineCatalog {
 public:
  // The store must outlive the catalogue: policies point into it.
  static Result<EngineCatalog> from(const FactStore& store);

  // `name` is an id or alias, in any case. A blank version means the release current at `date`
  // (ISO, may be partial), a blank date the newest known; what was taken is in
  // `EnginePolicy::assumptions`. Unknown engines are refused with the nearest name.
  Result<EnginePolicy> find(std::string_view name, std::string_view version = {},
                            std::string_view date = {}) const;
  // The engine most people would use for this task on this card, at its newest entry.
  Result<EnginePolicy> default_for(EngineTask task, const Accelerator& card,
                                   const Model& model) const;
  std::vector<std::string> ids() const;

 private:
  std::vector<const FactSheet*> sheets_;  // sorted by id
};

// Orders versions: a leading letter ("v", "b") is skipped, then numbers compare one by one.
// Empty when the text is no such version ("core-dev", a commit).
std::vector<std::int64_t> parse_version(std::string_view text);

}  // namespace trigon
