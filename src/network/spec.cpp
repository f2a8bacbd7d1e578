#include "network/spec.hpp"

#include <cmath>

namespace trigon {

const Fact* NetworkSpec::fact(std::string_view key) const {
  if (const Fact* f = find_fact(variant_->facts, key)) return f;
  return family_->find(key);
}

void NetworkSpec::missing(std::string_view key) const {
  if (!error_)
    error_ = Error{ErrorCode::missing_fact, message(BaseMessage::missing_key, key),
                   family_->where + "#" + id(), std::nullopt};
}

double NetworkSpec::number(std::string_view key) const {
  if (const Fact* f = fact(key))
    if (auto v = std::get_if<double>(&f->value)) return *v;
  missing(key);
  return 1;
}

double NetworkSpec::number(std::string_view key, double otherwise) const {
  return has(key) ? number(key) : otherwise;
}

std::int64_t NetworkSpec::whole(std::string_view key) const {
  const double v = number(key);
  if (v < 0 || v > 1e12 || v != std::floor(v)) {
    missing(key);
    return 1;
  }
  return static_cast<std::int64_t>(v);
}

std::int64_t NetworkSpec::whole(std::string_view key, std::int64_t otherwise) const {
  return has(key) ? whole(key) : otherwise;
}

bool NetworkSpec::flag(std::string_view key, bool otherwise) const {
  const Fact* f = fact(key);
  if (!f) return otherwise;
  if (auto v = std::get_if<bool>(&f->value)) return *v;
  missing(key);
  return otherwise;
}

std::string NetworkSpec::text(std::string_view key) const {
  if (const Fact* f = fact(key))
    if (auto v = std::get_if<std::string>(&f->value)) return *v;
  missing(key);
  return {};
}

std::string NetworkSpec::text(std::string_view key, std::string_view otherwise) const {
  return has(key) ? text(key) : std::string(otherwise);
}

std::vector<double> NetworkSpec::numbers(std::string_view key) const {
  if (const Fact* f = fact(key)) {
    if (auto v = std::get_if<std::vector<double>>(&f->value)) return *v;
    if (auto v = std::get_if<double>(&f->value)) return {*v};
  }
  missing(key);
  return {1};
}

std::vector<std::int64_t> NetworkSpec::wholes(std::string_view key) const {
  std::vector<std::int64_t> out;
  for (double v : numbers(key)) {
    if (v < 0 || v > 1e12 || v != std::floor(v)) {
      missing(key);
      v = 1;
    }
    out.push_back(static_cast<std::int64_t>(v));
  }
  return out;
}

std::vector<std::string> NetworkSpec::texts(std::string_view key) const {
  if (const Fact* f = fact(key)) {
    if (auto v = std::get_if<std::vector<std::string>>(&f->value)) return *v;
    if (auto v = std::get_if<std::string>(&f->value)) return {*v};
  }
  missing(key);
  return {};
}

std::int64_t NetworkSpec::height() const {
  return item_->size.empty() ? wholes("image").front() : item_->size.front();
}

std::int64_t NetworkSpec::image_width() const {
  return item_->size.empty() ? wholes("image").back() : item_->size.back();
}

std::int64_t NetworkSpec::tokens() const {
  return item_->tokens ? *item_->tokens : whole("tokens");
}

double NetworkSpec::audio_seconds() const {
  return item_->audio_seconds ? *item_->audio_seconds : number("audio_seconds");
}

std::int64_t NetworkSpec::steps() const { return item_->steps ? *item_->steps : whole("steps"); }

bool NetworkSpec::guidance() const { return item_->guidance ? *item_->guidance : flag("guidance"); }

std::string NetworkSpec::id() const {
  const Fact* f = find_fact(variant_->facts, "id");
  auto v = f ? std::get_if<std::string>(&f->value) : nullptr;
  return v ? *v : family_->id;
}

std::string NetworkSpec::source() const { return text("source", family_->source); }

Model network_model(const NetworkSpec& spec, Graph graph, WorkUnit unit,
                    std::vector<std::int64_t> size) {
  if (spec.flag("sparse_tables"))
    for (const GraphNode& n : graph.nodes)
      if (std::holds_alternative<TableLookup>(n.operation))
        for (WeightId w : n.weights) graph.weights[w].by_row = true;
  Model m;
  m.id = spec.id();
  m.architecture = spec.family().id;
  m.source = spec.source();
  m.date = spec.family().date;
  m.weight_format = Format::f32;
  Item item;
  item.unit = unit;
  item.size = std::move(size);
  item.counted = spec.text("counted", "");
  item.counted_per_item = spec.number("counted_per_item", 1);
  m.item = std::move(item);
  m.components.push_back({spec.id(), ComponentRole::network, std::move(graph)});
  return m;
}

}  // namespace trigon
