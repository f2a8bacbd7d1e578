// Encoders and decoders with skip connections: Ronneberger et al. 2015, arXiv:1505.04597; in three
// dimensions Cicek et al. 2016, arXiv:1606.06650; nnU-Net, arXiv:1809.10486.
//
// `downsampling` "stride": the first convolution of a level halves it (nnU-Net, MLPerf); "pool":
// a maximum over 2 x 2 does (the original, whose convolutions have no border: `valid`).

#include <string>

#include "network/builder.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

struct Style {
  bool valid = false, instance_norm = true, pool = false;
  Activation activation = Activation::relu;
};

ValueId double_convolution(NetworkBuilder& b, ValueId x, std::int64_t out, std::int64_t stride,
                           const Style& s) {
  for (int i = 0; i < 2; ++i) {
    auto in_conv = b.scope("conv" + std::to_string(i));
    ConvolutionOptions o;
    o.stride = i == 0 ? stride : 1;
    o.bias = !s.instance_norm;
    if (s.valid) o.padding = 0;
    x = b.convolution("conv", x, out, o);
    if (s.instance_norm) x = b.instance_norm("norm", x);
    x = b.activation("act", x, s.activation);
  }
  return x;
}

// The middle of `x`, as large as `like`: a view.
ValueId cropped(NetworkBuilder& b, ValueId x, ValueId like) {
  for (std::size_t i = 1; i < b.shape(x).size(); ++i)
    if (b.shape(x)[i] > b.shape(like)[i]) x = b.slice("crop", x, i, b.shape(like)[i]);
  return x;
}

}  // namespace

Model build_segmentation(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const auto filters = spec.wholes("filters");
  const bool volume = spec.whole("dimensions", 2) == 3;
  Style s;
  s.valid = spec.flag("valid");
  s.instance_norm = spec.text("norm", "instance") == "instance";
  s.pool = spec.text("downsampling", "stride") == "pool";
  if (spec.text("activation", "relu") == "leaky_relu") s.activation = Activation::leaky_relu;
  std::vector<std::int64_t> size{spec.height(), spec.image_width()};
  if (volume) size.insert(size.begin(), spec.height());
  TensorShape shape{spec.whole("in_channels", 1)};
  shape.insert(shape.end(), size.begin(), size.end());
  ValueId x = b.input(shape);
  std::vector<ValueId> skips;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    auto in_level = b.scope("down" + std::to_string(i));
    if (i > 0 && s.pool) x = b.max_pool("pool", x, 2, 2);
    x = double_convolution(b, x, filters[i], i > 0 && !s.pool ? 2 : 1, s);
    skips.push_back(x);
  }
  for (std::size_t i = filters.size() - 1; i-- > 0;) {
    auto in_level = b.scope("up" + std::to_string(i));
    ConvolutionOptions up;
    up.kernel = 2;
    up.stride = 2;
    up.bias = true;
    x = b.transposed_convolution("deconv", x, filters[i], up);
    if (s.pool) x = b.activation("act", x, s.activation);
    x = b.concatenate("skip", {cropped(b, skips[i], x), x});
    x = double_convolution(b, x, filters[i], 1, s);
  }
  ConvolutionOptions last;
  last.kernel = 1;
  last.bias = true;
  x = b.convolution("output", x, spec.whole("classes"), last);
  return network_model(spec, b.finish({x}), volume ? WorkUnit::volume : WorkUnit::image, size);
}

}  // namespace trigon
