#pragma once
// Node types (data/systems/) and links by name (data/links/), and all of the hardware together.

#include "hardware/catalog.hpp"
#include "hardware/cluster.hpp"

namespace trigon {

// A node as sold or rented.
struct System {
  std::string id;    // "dgx-h100", "p5.48xlarge"
  std::string name;  // as its maker writes it
  std::string vendor;
  const Accelerator* accelerator = nullptr;
  int count = 1;  // accelerators that reach each other inside
  PeerTopology topology = PeerTopology::none;
  std::optional<BytesPerSecond> intra_one_way;  // per accelerator, one direction
  std::optional<BytesPerSecond> inter_one_way;  // per accelerator, to other nodes
  std::string nic;                              // as described
  std::optional<Bytes> host_memory;
  std::optional<Watts> power;
  const FactSheet* sheet = nullptr;
};

enum class LinkKind : std::uint8_t { peer, pcie, network };

// A link by name, per accelerator and one direction.
struct NamedLink {
  Link link;
  LinkKind kind = LinkKind::network;
  std::string name;
  const FactSheet* sheet = nullptr;
};

class HardwareCatalog {
 public:
  // The store must outlive the catalogue.
  static Result<HardwareCatalog> from(const FactStore& store);

  AcceleratorCatalog accelerators;

  const std::vector<System>& systems() const { return systems_; }  // sorted by id
  const std::vector<NamedLink>& links() const { return links_; }   // sorted by id
  // By id in any case, or an alias. Empty when no node type has this name; several candidates are
  // an error that lists them.
  Result<const System*> find_system(std::string_view name, std::string_view where = {}) const;
  // As find_system, but null instead of an error when the name is unknown.
  Result<const System*> system_or_null(std::string_view name, std::string_view where = {}) const;
  Result<const NamedLink*> find_link(std::string_view name, std::string_view where = {}) const;
  // The node type that stands for `count` of these accelerators where the network is not given:
  // its maker's own one if there is one, and only one whose network is known.
  const System* typical_system(const Accelerator& a, int count) const;

 private:
  std::vector<System> systems_;
  std::vector<NamedLink> links_;
};

}  // namespace trigon
