#include "cost/engine_effects.hpp"

#include <algorithm>
#include <cmath>

#include "base/fact_values.hpp"
#include "cost/device_model.hpp"

namespace trigon {
namespace {

constexpr std::string_view kGraph = "graph-", kEncoder = "encoder-";

std::string joined(std::string_view kind, std::string_view engine, std::string_view scope,
                   std::string_view cls, std::string_view format) {
  std::string key;
  key.reserve(64);
  for (std::string_view part : {kind, engine, scope, cls, format}) {
    if (!key.empty()) key += '/';
    key += part;
  }
  return key;
}

std::string scoped(const char* what, std::string_view id) {
  std::string s = what;
  s += id;
  return s;
}

}  // namespace

const std::array<ParameterInfo, kEngineParameters>& engine_parameters() {
  using C = EngineCoefficients;
  static const std::array<ParameterInfo, kEngineParameters> all = {{
      {"compute", &C::compute_factor, 0.02, 1.6},
      {"stream", &C::stream_factor, 0.02, 1.3},
      // An SM's path to the last-level cache takes 64 bytes a clock.
      {"core_stream", &C::core_stream, 0.5, 64},
      {"fixed", &C::fixed_factor, 0.05, 4},
      {"attention", &C::attention_factor, 0.01, 2},
      {"prompt_attention", &C::prompt_attention_factor, 0.1, 10},
      {"convolution", &C::convolution_factor, 0.02, 2.5},
      {"convolution_k_half", &C::convolution_k_half, 1, 2000},
      {"line_convolution", &C::line_convolution_factor, 0.1, 2},
      {"volume_convolution", &C::volume_convolution_factor, 0.1, 2},
      {"cache", &C::cache_speedup, 1, 5},
      {"link", &C::link_factor, 0.3, 10},
      {"operator_overhead_seconds", &C::operator_overhead_seconds, 0, 3e-4},
      {"step_overhead_seconds", &C::step_overhead_seconds, 0, 0.5},
      {"layer_overhead_seconds", &C::layer_overhead_seconds, 0, 2e-2},
      {"request_overhead_seconds", &C::request_overhead_seconds, 0, 0.2},
      {"overlap", &C::overlap, 0.05, 1},
  }};
  return all;
}

const char* engine_kind_name(EngineKind k) {
  constexpr const char* names[] = {"serve",         "train",       "serve-encoder",
                                   "train-encoder", "serve-graph", "train-graph"};
  return names[static_cast<std::size_t>(k)];
}

double largest(EngineKind k, EngineParameter p) {
  if (p == EngineParameter::operator_overhead && k == EngineKind::train_graph) return 6e-5;
  if (k == EngineKind::serve && p == EngineParameter::step_overhead) return 8e-3;
  if (k == EngineKind::serve && p == EngineParameter::request_overhead) return 2e-2;
  if (k == EngineKind::serve && p == EngineParameter::link) return 1.5;
  // Tables time an operator from an idle host; between others a kernel's ramp can only be shorter.
  if (p == EngineParameter::fixed) return 1;
  return engine_parameters()[static_cast<std::size_t>(p)].high;
}

double largest(const EngineSubject& s, EngineParameter p) {
  // A server's layer over a prompt is about 15 kernels: 2 norms, 4 products, rotation, cache,
  // attention, activation and what quantises before products, each launched in 10 us from Python
  // (PyTorch, "Accelerating PyTorch with CUDA Graphs": 8 us and more of CPU time for an operation).
  constexpr double kServedLayer = 15 * 1e-5;
  // An eager one is 50 (src/step/prepare.cpp), whose modules take up to 60 us an operation.
  constexpr double kEagerLayer = 50 * 6e-5;
  if (s.kind == EngineKind::serve && p == EngineParameter::layer_overhead)
    return s.eager ? kEagerLayer : kServedLayer;
  constexpr double kMostOfTables = 1.1;
  // The tables time FP8 by kernels of servers, 0.518 of an H100's peak, where a library's reach
  // 0.709 (stas00/ml-engineering, MAMF); and a tenth.
  constexpr double kMostOfTraining = 1.5;
  if (s.kind == EngineKind::train && p == EngineParameter::compute)
    return s.weight_class == "half" ? kMostOfTables : kMostOfTraining;
  if (s.kind == EngineKind::serve && s.vendor == "nvidia" && s.weight_class == "half" &&
      p == EngineParameter::compute)
    return kMostOfTables;
  return largest(s.kind, p);
}

EngineSubject engine_subject(std::string_view engine, const Accelerator& a, bool training,
                             std::string_view weight_class, Format format,
                             std::string_view library) {
  const auto starts = [&](std::string_view prefix) {
    return weight_class.substr(0, prefix.size()) == prefix;
  };
  EngineSubject s;
  if (starts(kGraph))
    s.kind = training ? EngineKind::train_graph : EngineKind::serve_graph;
  else if (starts(kEncoder))
    s.kind = training ? EngineKind::train_encoder : EngineKind::serve_encoder;
  else
    s.kind = training ? EngineKind::train : EngineKind::serve;
  s.engine = engine;
  // A maker's processors have nothing in common with its cards.
  s.vendor = a.kind == DeviceKind::cpu ? "cpu" : std::string_view(a.vendor);
  s.family = a.family;
  s.device = a.id;
  s.weight_class = weight_class;
  s.format = format;
  if (!training) s.library = library;
  if (consumer_board(a.family)) s.line = "geforce";
  return s;
}

std::string effect_key(const EngineSubject& s, EngineLevel level) {
  const char* kind = engine_kind_name(s.kind);
  const std::string_view format = info(s.format).name, cls = s.weight_class;
  const auto vendor = [&] { return scoped("vendor:", s.vendor); };
  const auto family = [&] { return scoped("family:", s.family); };
  const auto device = [&] { return scoped("device:", s.device); };
  const auto library = [&] { return scoped("library:", s.library); };
  switch (level) {
    case EngineLevel::kind:
      return joined(kind, {}, {}, {}, {});
    case EngineLevel::weight_class:
      return joined(kind, {}, {}, cls, {});
    case EngineLevel::format:
      return joined(kind, {}, {}, cls, format);
    case EngineLevel::vendor:
      return joined(kind, {}, vendor(), {}, {});
    case EngineLevel::line:
      // GeForce has power to spare and no ECC in its memory, whatever the family. Told apart where
      // several families of it were measured: networks.
      return s.line.empty() || s.kind != EngineKind::serve_graph
                 ? std::string()
                 : joined(kind, {}, scoped("line:", s.line), {}, {});
    case EngineLevel::family:
      return joined(kind, {}, family(), {}, {});
    case EngineLevel::device:
      return joined(kind, {}, device(), {}, {});
    case EngineLevel::family_class:
      return joined(kind, {}, family(), cls, {});
    case EngineLevel::library:
      return s.library.empty() ? std::string() : joined(kind, library(), {}, {}, {});
    case EngineLevel::library_class:
      return s.library.empty() ? std::string() : joined(kind, library(), {}, cls, {});
    case EngineLevel::library_format:
      return s.library.empty() ? std::string() : joined(kind, library(), {}, cls, format);
    case EngineLevel::library_vendor:
      return s.library.empty() ? std::string() : joined(kind, library(), vendor(), {}, {});
    case EngineLevel::engine:
      return joined(kind, s.engine, {}, {}, {});
    case EngineLevel::engine_class:
      return joined(kind, s.engine, {}, cls, {});
    case EngineLevel::engine_format:
      return joined(kind, s.engine, {}, cls, format);
    case EngineLevel::engine_vendor:
      return joined(kind, s.engine, vendor(), {}, {});
    case EngineLevel::engine_family:
      return joined(kind, s.engine, family(), {}, {});
    case EngineLevel::engine_family_class:
      return joined(kind, s.engine, family(), cls, {});
    case EngineLevel::engine_device:
      return joined(kind, s.engine, device(), {}, {});
    case EngineLevel::engine_device_class:
      return joined(kind, s.engine, device(), cls, {});
    case EngineLevel::count_:
      break;
  }
  return {};
}

std::optional<EngineCoefficients> EngineTable::of(const EngineSubject& s) const {
  EngineCoefficients c;
  const auto& parameters = engine_parameters();
  bool own = false;
  for (std::size_t l = 0; l < kEngineLevels; ++l) {
    const auto level = static_cast<EngineLevel>(l);
    const auto it = effects.find(effect_key(s, level));
    if (it == effects.end()) {
      if (level == EngineLevel::kind) return std::nullopt;
      continue;
    }
    for (std::size_t p = 0; p < kEngineParameters; ++p) {
      double& value = c.*parameters[p].field;
      value = level == EngineLevel::kind ? it->second.factor[p] : value * it->second.factor[p];
    }
    if (level >= EngineLevel::engine) c.sheet = it->first;
    if (level == EngineLevel::engine_family || level == EngineLevel::engine_device) own = true;
  }
  for (std::size_t p = 0; p < kEngineParameters; ++p) {
    double& value = c.*parameters[p].field;
    value = std::clamp(value, parameters[p].low, largest(s, static_cast<EngineParameter>(p)));
  }
  c.end_to_end = true;
  c.basis = own ? Basis::calibrated : Basis::analytic;
  if (c.sheet.empty()) c.sheet = engine_kind_name(s.kind);
  c.sheet = id + "#" + c.sheet;
  const std::string kind = engine_kind_name(s.kind);
  const std::string engine = kind + "/" + std::string(s.engine);
  const auto& table = own ? errors : strange;
  for (const std::string& key : {engine + "/" + std::string(s.family), engine + "/", kind + "//"})
    if (const auto it = table.find(key); it != table.end()) {
      c.compute_error = it->second.compute;
      c.stream_error = it->second.stream;
      break;
    }
  return c;
}

EngineTable read_engine_table(const FactSheet& sheet) {
  EngineTable table;
  table.id = sheet.id;
  for (const FactGroup& g : sheet.groups) {
    if (g.name != "effect") {
      EngineErrors e{number_of(g, "compute", 0), number_of(g, "stream", 0),
                     static_cast<std::int64_t>(number_of(g, "rows", 0))};
      (g.name == "error" ? table.errors
                         : table.strange)[text_of(g, "kind") + "/" + text_of(g, "engine") + "/" +
                                          text_of(g, "family")] = e;
      continue;
    }
    const std::string key = joined(text_of(g, "kind"), text_of(g, "engine"), text_of(g, "scope"),
                                   text_of(g, "class"), text_of(g, "format"));
    const bool whole = key == joined(text_of(g, "kind"), {}, {}, {}, {});
    EngineEffect e;
    for (std::size_t p = 0; p < kEngineParameters; ++p) {
      const ParameterInfo& info = engine_parameters()[p];
      e.factor[p] = number_of(g, info.name, whole ? EngineCoefficients{}.*info.field : 1);
    }
    e.rows = static_cast<std::int64_t>(number_of(g, "rows", 0));
    table.effects[key] = e;
  }
  return table;
}

}  // namespace trigon
