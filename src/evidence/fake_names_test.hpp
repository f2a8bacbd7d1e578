#pragma once
// Names and answers for tests of the evidence room that need no catalogue.

#include "evidence/validate.hpp"
#include "model/decoder_spec.hpp"

namespace trigon {

inline std::shared_ptr<const Model> tiny_model() {
  DecoderSpec s;
  s.id = "tiny";
  s.architecture = "Tiny";
  s.hidden = 64;
  s.vocabulary = 1000;
  LayerSpec l;
  l.heads = l.kv_heads = 4;
  l.head_dim = l.value_dim = 16;
  l.ffn = 128;
  s.layers.assign(2, l);
  return std::make_shared<const Model>(*build_decoder(s, "test"));
}

struct FakeWorld {
  Accelerator a, b;
  std::shared_ptr<const Model> model = tiny_model();
  FakeWorld() {
    a.id = "card-a";
    b.id = "card-b";
  }
  RowNames names() const {
    RowNames n;
    n.hardware = [this](std::string_view name) -> std::vector<const Accelerator*> {
      if (name == "A") return {&a};
      if (name == "A or B") return {&a, &b};
      if (name == "H100-SXM-80GB") return {&b};
      return {};
    };
    n.cluster = [](const MachineColumns& m) -> Result<Cluster> {
      Cluster c;
      c.accelerator = m.accelerator;
      c.per_node = m.per_node;
      c.nodes = m.cards / m.per_node;
      return c;
    };
    n.model = [this](std::string_view name) {
      return name == "tiny" ? model : std::shared_ptr<const Model>();
    };
    n.engine = [](std::string_view name, std::string_view version,
                  std::string_view) -> std::optional<std::string> {
      if (name == "unknown") return std::nullopt;
      return std::string(name) + (version.empty() ? "" : "@" + std::string(version));
    };
    return n;
  }
};

// An answer in which every metric is `value`, between half and twice of it.
inline EstimateAnswer flat_answer(double value) {
  EstimateAnswer answer;
  for (auto& m : answer.report.metrics)
    m = Estimate<double>{value, value / 2, value * 2, Basis::analytic};
  return answer;
}

inline CsvTable table_of(const std::string& text) { return *parse_csv(text, "t.csv"); }

}  // namespace trigon
