#pragma once
// The tensors and numbers of one layer of a GGUF file.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/gguf.hpp"
#include "model/model.hpp"

namespace trigon {

struct GgufShape {
  const Tensor* tensor = nullptr;
  explicit operator bool() const { return tensor != nullptr; }
  // Last dimension is a row: input features; the one before it output features.
  std::int64_t in() const { return tensor && !tensor->shape.empty() ? tensor->shape.back() : 0; }
  std::int64_t out() const {
    return tensor && tensor->shape.size() > 1 ? tensor->shape[tensor->shape.size() - 2] : 0;
  }
  std::int64_t count() const { return tensor && tensor->shape.size() > 2 ? tensor->shape[0] : 1; }
  Format format() const { return tensor ? tensor->format : Format::unknown; }
};

using GgufNames = std::map<std::string, const Tensor*, std::less<>>;

inline Format known(Format f) { return f == Format::unknown ? Format::bf16 : f; }

class GgufBlock {
 public:
  // `side` stands before the names of one of two stacks ("dec.").
  GgufBlock(const GgufHeader& h, const std::string& arch, const GgufNames& names,
            std::string side = "")
      : h_(h), arch_(arch), names_(names), side_(std::move(side)) {}
  void move_to(std::int64_t layer) {
    layer_ = layer;
    prefix_ = side_ + "blk." + std::to_string(layer) + ".";
  }
  GgufShape at(std::string_view name) const {
    auto it = names_.find(prefix_ + std::string(name));
    return it == names_.end() ? GgufShape{} : GgufShape{it->second};
  }
  bool has(std::string_view name) const { return static_cast<bool>(at(name)); }
  std::string key(std::string_view k) const { return arch_ + "." + std::string(k); }
  // One number, or one for each layer.
  std::optional<std::int64_t> number(std::string_view k) const {
    if (auto v = h_.integer(key(k))) return plausible(*v);
    if (const GgufList* list = h_.list(key(k));
        list && layer_ < static_cast<std::int64_t>(list->numbers.size())) {
      const double v = list->numbers[static_cast<std::size_t>(layer_)];
      if (v >= 0 && v <= 1e9) return static_cast<std::int64_t>(v);
    }
    return std::nullopt;
  }
  // Products of two fit 64 bits.
  static std::optional<std::int64_t> plausible(std::int64_t v) {
    if (v < 0 || v > (std::int64_t{1} << 31)) return std::nullopt;
    return v;
  }

 protected:
  const GgufHeader& h_;
  const std::string& arch_;
  const GgufNames& names_;
  std::string side_;
  std::int64_t layer_ = 0;
  std::string prefix_;
};

// The recurrent mixer of the layer, if it has one; `hidden` is the model's width.
std::optional<RecurrentMixer> read_gguf_mixer(const GgufBlock& block, std::int64_t hidden);

}  // namespace trigon
