#include "network/convolution_blocks.hpp"

#include <cmath>

namespace trigon {

ValueId convolution_unit(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
                         const UnitOptions& o) {
  const std::string n(name);
  ConvolutionOptions c;
  c.kernel = o.kernel;
  c.stride = o.stride;
  c.groups = o.groups;
  c.same = o.same;
  c.padding = o.padding;
  c.dilation = o.dilation;
  x = b.batch_norm(n + ".bn", b.convolution(n + ".conv", x, out, c));
  return b.activation(n + ".act", x, o.act);
}

ValueId squeeze_excite(NetworkBuilder& b, std::string_view name, ValueId x, const Excitation& e) {
  auto scope = b.scope(name);
  ValueId s = b.global_average_pool("mean", x);
  s = b.activation("act", b.linear("fc1", s, e.reduced), e.act);
  s = b.activation("gate", b.linear("fc2", s, b.channels(x)), e.gate);
  return b.multiply("scale", x, s);
}

ValueId channel_attention(NetworkBuilder& b, std::string_view name, ValueId x) {
  auto scope = b.scope(name);
  const std::int64_t c = b.channels(x);
  const auto t = static_cast<std::int64_t>((std::log2(static_cast<double>(c)) + 1) / 2);
  ConvolutionOptions o;
  o.kernel = std::max<std::int64_t>(t % 2 ? t : t + 1, 3);
  ValueId s = b.reshape("means", b.global_average_pool("mean", x), {1, c});
  s = b.activation("gate", b.convolution("conv", s, 1, o), Activation::sigmoid);
  return b.multiply("scale", x, b.reshape("gates", s, {c}));
}

ValueId blur_pool(NetworkBuilder& b, std::string_view name, ValueId x) {
  ConvolutionOptions o;
  o.stride = 2;
  o.groups = b.channels(x);
  o.trains = false;
  return b.convolution(name, x, b.channels(x), o);
}

ValueId classifier(NetworkBuilder& b, const NetworkSpec& spec, std::string_view name, ValueId x) {
  return b.linear(name, b.global_average_pool("avgpool", x), spec.whole("classes", 1000));
}

ValueId image_input(NetworkBuilder& b, const NetworkSpec& spec) {
  return b.input({3, spec.height(), spec.image_width()});
}

Model image_model(const NetworkSpec& spec, NetworkBuilder& b, ValueId output) {
  return network_model(spec, b.finish({output}), WorkUnit::image,
                       {spec.height(), spec.image_width()});
}

std::int64_t round_channels(double v, std::int64_t divisor, double limit) {
  const auto d = static_cast<double>(divisor);
  const auto rounded =
      std::max(divisor, static_cast<std::int64_t>(std::floor((v + d / 2) / d)) * divisor);
  return static_cast<double>(rounded) < limit * v ? rounded + divisor : rounded;
}

std::optional<Activation> activation_named(std::string_view name) {
  struct Entry {
    std::string_view name;
    Activation act;
  };
  constexpr Entry kNames[] = {{"none", Activation::none},
                              {"relu", Activation::relu},
                              {"relu6", Activation::relu6},
                              {"leaky_relu", Activation::leaky_relu},
                              {"gelu", Activation::gelu},
                              {"silu", Activation::silu},
                              {"hard_swish", Activation::hard_swish},
                              {"sigmoid", Activation::sigmoid},
                              {"hard_sigmoid", Activation::hard_sigmoid},
                              {"mish", Activation::mish}};
  for (const Entry& e : kNames)
    if (e.name == name) return e.act;
  return std::nullopt;
}

}  // namespace trigon
