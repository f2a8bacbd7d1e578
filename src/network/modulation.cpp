#include "network/modulation.hpp"

namespace trigon {

ValueId condition_embedding(NetworkBuilder& b, std::string_view name, ValueId x,
                            std::int64_t width) {
  auto in_embedding = b.scope(name);
  return b.linear("linear_2", b.activation("act", b.linear("linear_1", x, width), Activation::silu),
                  width);
}

std::vector<ValueId> modulation(NetworkBuilder& b, std::string_view name, ValueId condition,
                                std::int64_t parts, std::int64_t width) {
  auto in_modulation = b.scope(name);
  const ValueId all =
      b.linear("linear", b.activation("silu", condition, Activation::silu), parts * width);
  return b.split("parts", all, 1,
                 std::vector<std::int64_t>(static_cast<std::size_t>(parts), width));
}

ValueId modulated_norm(NetworkBuilder& b, std::string_view name, ValueId x, ValueId shift,
                       ValueId scale) {
  auto in_norm = b.scope(name);
  return b.elementwise("modulate", {b.layer_norm("norm", x, false), scale, shift}, "modulate", 3,
                       Keeps::inputs);
}

ValueId gated_add(NetworkBuilder& b, std::string_view name, ValueId x, ValueId gate, ValueId y) {
  return b.elementwise(name, {x, y, gate}, "gated_add", 2, Keeps::inputs);
}

ValueId modulated_output(NetworkBuilder& b, ValueId x, ValueId condition, std::int64_t out) {
  const std::vector<ValueId> m = modulation(b, "norm_out", condition, 2, b.width(x));
  return b.linear("proj_out", modulated_norm(b, "norm_out", x, m[0], m[1]), out);
}

}  // namespace trigon
