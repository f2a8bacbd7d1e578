#pragma once
// The language models of data/models/ by id and by every name their sheets give. The index holds
// names only; a model is built when it is asked for.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/facts.hpp"
#include "model/decoder_spec.hpp"
#include "model/model.hpp"

namespace trigon {

class ModelCatalog {
 public:
  // The store must outlive the catalogue.
  static Result<ModelCatalog> from(const FactStore& store);

  const std::vector<const FactSheet*>& all() const { return sheets_; }  // sorted by id
  const FactSheet* by_id(std::string_view id) const;
  // One model by id or alias, compared without case, blanks, '-' and '_'. An ambiguous name is an
  // error that lists the choices, an unknown one names the nearest.
  Result<Model> find(std::string_view name, std::string_view where = {}) const;
  Result<const FactSheet*> find_sheet(std::string_view name, std::string_view where = {}) const;
  // As `find_sheet`, but an ambiguous name gives all its candidates.
  Result<std::vector<const FactSheet*>> resolve_all(std::string_view name,
                                                    std::string_view where = {}) const;

 private:
  struct Name {
    std::string key;    // normalised
    std::size_t sheet;  // in sheets_
  };
  struct Ambiguous {
    std::string key;
    std::vector<std::string> candidates;
  };
  std::vector<const FactSheet*> sheets_;
  std::vector<Name> names_;  // sorted by key
  std::vector<Ambiguous> ambiguous_;
};

// What the sheet says, as every reader says it.
Result<DecoderSpec> read_model_sheet(const FactSheet& sheet);
Result<Model> build_model(const FactSheet& sheet);

}  // namespace trigon
