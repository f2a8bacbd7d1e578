#include "evidence/catalogue_names.hpp"

#include <map>
#include <string>
#include <tuple>

#include "evidence/timed_operators.hpp"
#include "hardware/parse.hpp"
#include "model/gguf_file_type.hpp"

namespace trigon {

namespace {

using ModelPointer = std::shared_ptr<const Model>;

// Models by the name that rows use; a null is remembered too.
class Models {
 public:
  explicit Models(const ModelCatalog& catalog) : catalog_(&catalog) {}

  ModelPointer find(std::string_view name) {
    const auto known = by_name_.find(name);
    if (known != by_name_.end()) return known->second;
    ModelPointer model;
    if (auto sheet = catalog_->find_sheet(name)) {
      if (auto built = build_model(**sheet)) {
        model = std::make_shared<const Model>(std::move(*built));
        sheets_[model.get()] = *sheet;
      }
    }
    return by_name_[std::string(name)] = model;
  }

  ModelPointer in_file_type(const ModelPointer& model, std::string_view type) {
    const auto sheet = sheets_.find(model.get());
    if (sheet == sheets_.end()) return nullptr;
    ModelPointer& kept = by_type_[{model.get(), std::string(type)}];
    if (kept) return kept;
    auto spec = read_model_sheet(*sheet->second);
    if (!spec || !apply_gguf_file_type(*spec, type)) return nullptr;
    auto built = build_decoder(*spec, sheet->second->where);
    if (!built) return nullptr;
    return kept = std::make_shared<const Model>(std::move(*built));
  }

 private:
  const ModelCatalog* catalog_;
  std::map<std::string, ModelPointer, std::less<>> by_name_;
  std::map<const Model*, const FactSheet*> sheets_;
  std::map<std::pair<const Model*, std::string>, ModelPointer> by_type_;
};

// Networks by name and item.
class Networks {
 public:
  explicit Networks(const NetworkCatalog& catalog) : catalog_(&catalog) {}

  ModelPointer find(std::string_view name, const ItemOptions& item) {
    // Tables of several libraries say which one a network is of.
    constexpr std::string_view kLibrary = "timm:";
    if (name.substr(0, kLibrary.size()) == kLibrary) name.remove_prefix(kLibrary.size());
    if (!catalog_->entry(name)) return nullptr;
    auto key = std::make_tuple(std::string(name), item.size, item.steps.value_or(0),
                               item.guidance.value_or(false), item.tokens.value_or(0),
                               item.audio_seconds.value_or(0));
    auto known = built_.find(key);
    if (known != built_.end()) return known->second;
    auto model = catalog_->find(name, item);
    return built_[key] = model ? std::make_shared<const Model>(std::move(*model)) : nullptr;
  }

 private:
  const NetworkCatalog* catalog_;
  std::map<
      std::tuple<std::string, std::vector<std::int64_t>, std::int64_t, bool, std::int64_t, double>,
      ModelPointer>
      built_;
};

bool names_link(std::string_view text, std::string_view lower, std::string_view upper) {
  return text.substr(0, lower.size()) == lower || text.substr(0, upper.size()) == upper;
}

Result<Cluster> machine(const HardwareCatalog& hardware, const MachineColumns& m) {
  const int nodes = m.cards / m.per_node;
  std::string text =
      std::to_string(nodes) + "x" + std::to_string(m.per_node) + "x" + m.accelerator->id;
  // A stated link between the cards overrides what the catalogue takes where both exist.
  if (m.per_node > 1 && names_link(m.intra_link, "PCIe", "PCIE")) text += "@pcie";
  if (m.per_node > 1 && names_link(m.intra_link, "NVLink", "NVLINK") &&
      m.accelerator->peer_link.topology == PeerTopology::bridge_pair)
    text += "@nvlink";
  auto cluster = parse_hardware(text, hardware);
  if (!cluster) cluster = make_cluster(hardware, *m.accelerator, m.per_node, nodes);
  if (m.inter_gbps && nodes > 1) {
    Link network;
    network.id = "ib" + std::to_string(static_cast<int>(*m.inter_gbps));
    network.one_way = gigabits_per_second(*m.inter_gbps);
    cluster->inter = network;
  }
  return cluster;
}

}  // namespace

RowNames row_names(const Catalogues& all) {
  RowNames n;
  n.shipped = &all.calibration;
  n.hardware = [&all](std::string_view name) {
    auto found = all.hardware.accelerators.resolve_all(name);
    if (found) return *found;
    std::vector<const Accelerator*> none;
    // A node type's name stands for its accelerator.
    if (auto system = all.hardware.system_or_null(name); system && *system)
      none.push_back((*system)->accelerator);
    return none;
  };
  n.cluster = [&all](const MachineColumns& m) { return machine(all.hardware, m); };
  auto models = std::make_shared<Models>(all.models);
  n.model = [models](std::string_view name) { return models->find(name); };
  auto networks = std::make_shared<Networks>(all.networks);
  n.network = [networks](std::string_view name, const ItemOptions& item) {
    return networks->find(name, item);
  };
  n.model_in_file_type = [models](const ModelPointer& model, std::string_view type) {
    return models->in_file_type(model, type);
  };
  n.engine = [&all](std::string_view name, std::string_view version,
                    std::string_view date) -> std::optional<std::string> {
    const auto policy = all.engines.find(name, version, date);
    if (!policy) return std::nullopt;
    return policy->id + (version.empty() ? "" : "@" + std::string(version));
  };
  n.runs_on_processors = [&all](std::string_view engine) {
    const auto policy = all.engines.find(engine.substr(0, engine.find('@')));
    return policy && policy->processors;
  };
  return n;
}

std::vector<Calibration> unseen_calibrations(const Catalogues& all) {
  std::vector<Calibration> out;
  for (int fold = 0; fold < kFolds; ++fold) {
    const std::string k = std::to_string(fold);
    const FactSheet* engines = all.facts.find("calibration_fold", k);
    const FactSheet* memory = all.facts.find("memory_errors", "without-" + k);
    if (!engines) return {};
    Calibration c =
        all.calibration.with_engines(std::make_shared<EngineTable>(read_engine_table(*engines)));
    if (memory)
      c = c.with_memory_errors(std::make_shared<MemoryErrorTable>(read_memory_errors(*memory)));
    out.push_back(std::move(c));
  }
  return out;
}

std::vector<Calibration> unseen_operators(const Catalogues& all) {
  std::vector<Calibration> out;
  for (int fold = 0; fold < kTimedFolds; ++fold) {
    const std::string kind = operator_fold_kind(fold);
    if (!all.facts.find(kind, "operators/any")) return {};
    out.push_back(all.calibration.with_operators(all.facts, kind));
  }
  return out;
}

RowNames row_names_unseen(const Catalogues& all) {
  auto folds = std::make_shared<std::vector<Calibration>>(unseen_calibrations(all));
  RowNames n = row_names(all);
  n.unseen = [folds](int fold) -> const Calibration* {
    const auto i = static_cast<std::size_t>(fold);
    return fold < 0 || i >= folds->size() ? nullptr : &(*folds)[i];
  };
  auto operators = std::make_shared<std::vector<Calibration>>(unseen_operators(all));
  n.unseen_operators = [operators](int fold) -> const Calibration* {
    const auto i = static_cast<std::size_t>(fold);
    return fold < 0 || i >= operators->size() ? nullptr : &(*operators)[i];
  };
  return n;
}

Predictor catalogue_predictor(const Catalogues& all) {
  return [&all](const Question& q, const Cluster& c, bool tuned) {
    return tuned ? estimate_best(all, q, c) : estimate(all, q, c);
  };
}

}  // namespace trigon
