#pragma once
// The module name patterns by which quantisation configs list what they skip or target:
// "lm_head", "self_attn", "model.layers.3.mlp.gate", "model.layers.*.self_attn", "re:.*gate$".

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trigon {

class ModulePatterns {
 public:
  void add(std::string_view pattern);
  // Does a pattern name this module ("self_attn.q_proj") of that layer, or a module around it?
  bool in_layer(std::int64_t layer, std::string_view path) const;
  // The same outside the layers ("lm_head").
  bool outside(std::string_view path) const;
  bool empty() const { return of_layer_.empty() && everywhere_.empty(); }

 private:
  std::map<std::int64_t, std::vector<std::string>> of_layer_;  // what follows the layer's number
  std::vector<std::string> everywhere_;
};

}  // namespace trigon
