// The facts that were packed at build time. Apart from the rest so that the packing tool, which
// runs before they exist, does not need them.

#include "base/facts.hpp"

extern "C" const char trigon_embedded_facts_begin[];
extern "C" const char trigon_embedded_facts_end[];

namespace trigon {

Result<FactStore> FactStore::embedded() {
  return from_packed(std::string_view(
      trigon_embedded_facts_begin,
      static_cast<std::size_t>(trigon_embedded_facts_end - trigon_embedded_facts_begin)));
}

Result<FactStore> FactStore::with_directory(const std::filesystem::path& dir) {
  auto store = embedded();
  if (!store) return store;
  auto over = from_directory(dir);
  if (!over) return over;
  for (auto& sheet : over->sheets_) store->put(std::move(sheet));
  store->sort();
  return store;
}

}  // namespace trigon
