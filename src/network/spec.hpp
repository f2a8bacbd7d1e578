#pragma once
// The facts of one variant of a network family, and what is asked of one item.

#include <string>
#include <string_view>
#include <vector>

#include "base/facts.hpp"
#include "model/item_options.hpp"
#include "model/model.hpp"
#include "network/messages.hpp"

namespace trigon {

// Reads facts of the variant, else those of the whole family's sheet. Keys that are required and
// missing are remembered; the first of them fails the build. Numbers are then 1, so that a builder
// runs through.
class NetworkSpec {
 public:
  NetworkSpec(const FactSheet& family, const FactGroup& variant, const ItemOptions& item)
      : family_(&family), variant_(&variant), item_(&item) {}

  bool has(std::string_view key) const { return fact(key) != nullptr; }
  std::int64_t whole(std::string_view key) const;
  std::int64_t whole(std::string_view key, std::int64_t otherwise) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double otherwise) const;
  bool flag(std::string_view key, bool otherwise = false) const;
  std::string text(std::string_view key) const;
  std::string text(std::string_view key, std::string_view otherwise) const;
  std::vector<std::int64_t> wholes(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;

  const ItemOptions& item() const { return *item_; }
  // Height and width: asked, else the fact `image` (one side or two). Checked by the catalogue
  // against `image_least`, `image_most` and `image_multiple`.
  std::int64_t height() const;
  std::int64_t image_width() const;
  // Asked, else the fact of that name.
  std::int64_t tokens() const;   // "tokens"
  double audio_seconds() const;  // "audio_seconds"
  std::int64_t steps() const;    // "steps"
  bool guidance() const;         // "guidance"

  std::string id() const;
  const FactSheet& family() const { return *family_; }
  // The source of the variant, else of the family.
  std::string source() const;
  // The first required fact that was missing or of another type.
  const std::optional<Error>& error() const { return error_; }

 private:
  const Fact* fact(std::string_view key) const;
  void missing(std::string_view key) const;
  const FactSheet* family_;
  const FactGroup* variant_;
  const ItemOptions* item_;
  mutable std::optional<Error> error_;
};

// A model of one graph that does one item in one go. Where the fact `sparse_tables` says so, tables
// are trained row by row and divided over the ranks, as recommenders are.
Model network_model(const NetworkSpec& spec, Graph graph, WorkUnit unit,
                    std::vector<std::int64_t> size);

}  // namespace trigon
