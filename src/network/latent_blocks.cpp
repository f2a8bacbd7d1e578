#include "network/latent_blocks.hpp"

namespace trigon {

ValueId convolution_3x3(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
                        std::int64_t stride) {
  ConvolutionOptions o;
  o.kernel = 3;
  o.stride = stride;
  o.bias = true;
  return b.convolution(name, x, out, o);
}

ValueId convolution_1x1(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out) {
  ConvolutionOptions o;
  o.kernel = 1;
  o.bias = true;
  return b.convolution(name, x, out, o);
}

ValueId norm_silu(NetworkBuilder& b, std::string_view name, ValueId x) {
  return b.activation("act", b.group_norm(name, x, 32), Activation::silu);
}

ValueId residual_block(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
                       std::optional<ValueId> time) {
  auto in_block = b.scope(name);
  ValueId y = convolution_3x3(b, "conv1", norm_silu(b, "norm1", x), out);
  if (time) {
    const ValueId t =
        b.linear("time_emb_proj", b.activation("time_act", *time, Activation::silu), out);
    y = b.add("add_time", y, b.reshape("as_channels", t, {out, 1, 1}));
  }
  y = convolution_3x3(b, "conv2", norm_silu(b, "norm2", y), out);
  if (b.channels(x) != out) x = convolution_1x1(b, "conv_shortcut", x, out);
  return b.add("add", x, y);
}

ValueId upsample_block(NetworkBuilder& b, std::string_view name, ValueId x) {
  auto in_block = b.scope(name);
  return convolution_3x3(b, "conv", b.upsample("nearest", x, 2), b.channels(x));
}

}  // namespace trigon
