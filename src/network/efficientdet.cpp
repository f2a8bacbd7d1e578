// EfficientDet: Tan et al. 2019, arXiv:1911.09070. An EfficientNet (arXiv:1905.11946) trunk, cells
// that fuse its levels from coarse to fine and back, and two heads of separable convolutions whose
// kernels all levels share while each has its own norms.

#include <algorithm>
#include <cmath>
#include <string>

#include "network/builder.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

// To a multiple of eight, never more than a tenth below (section 4 of arXiv:1905.11946's code).
std::int64_t round_width(double width) {
  const auto nearest = static_cast<std::int64_t>(width + 4) / 8 * 8;
  const std::int64_t w = std::max<std::int64_t>(8, nearest);
  return static_cast<double>(w) < 0.9 * width ? w + 8 : w;
}

ConvolutionOptions same(std::int64_t kernel, std::int64_t stride = 1, std::int64_t groups = 1,
                        bool bias = false) {
  ConvolutionOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.groups = groups;
  o.bias = bias;
  o.same = true;
  return o;
}

ValueId inverted_bottleneck(NetworkBuilder& b, ValueId x, std::int64_t out, std::int64_t expand,
                            std::int64_t kernel, std::int64_t stride) {
  const std::int64_t in = b.channels(x), wide = in * expand;
  ValueId y = x;
  if (expand != 1)
    y = b.activation("act0", b.batch_norm("bn0", b.convolution("expand", y, wide, same(1))),
                     Activation::silu);
  y = b.convolution("depthwise", y, wide, same(kernel, stride, wide));
  y = b.activation("act1", b.batch_norm("bn1", y), Activation::silu);
  ValueId g =
      b.linear("se_reduce", b.global_average_pool("se_pool", y), std::max<std::int64_t>(1, in / 4));
  g = b.linear("se_expand", b.activation("se_act", g, Activation::silu), wide);
  y = b.multiply("se_scale", y, b.activation("se_gate", g, Activation::sigmoid));
  y = b.batch_norm("bn2", b.convolution("project", y, out, same(1)));
  return stride == 1 && in == out ? b.add("add", x, y) : y;
}

// The trunk's levels at strides 8, 16 and 32.
std::vector<ValueId> trunk(NetworkBuilder& b, ValueId x, double width, double depth) {
  struct Stage {
    std::int64_t expand, out, count, stride, kernel;
  };
  const Stage stages[] = {{1, 16, 1, 1, 3},  {6, 24, 2, 2, 3},  {6, 40, 2, 2, 5}, {6, 80, 3, 2, 3},
                          {6, 112, 3, 1, 5}, {6, 192, 4, 2, 5}, {6, 320, 1, 1, 3}};
  auto in_backbone = b.scope("backbone");
  x = b.convolution("stem", x, round_width(32 * width), same(3, 2));
  x = b.activation("act", b.batch_norm("bn", x), Activation::silu);
  std::vector<ValueId> levels;
  for (std::size_t s = 0; s < std::size(stages); ++s) {
    const Stage& k = stages[s];
    const auto count =
        static_cast<std::int64_t>(std::ceil(depth * static_cast<double>(k.count) - 1e-9));
    for (std::int64_t i = 0; i < count; ++i) {
      auto in_block = b.scope(std::to_string(s) + "." + std::to_string(i));
      x = inverted_bottleneck(b, x, round_width(static_cast<double>(k.out) * width), k.expand,
                              k.kernel, i == 0 ? k.stride : 1);
    }
    if (s == 2 || s == 4 || s == 6) levels.push_back(x);
  }
  return levels;
}

ValueId to_width(NetworkBuilder& b, const std::string& name, ValueId x, std::int64_t width) {
  if (b.channels(x) == width) return x;
  auto in_resample = b.scope(name);
  return b.batch_norm("bn", b.convolution("conv", x, width, same(1, 1, 1, true)));
}

// A weighted sum of two or three maps of one size, a Swish, a separable convolution.
ValueId fuse(NetworkBuilder& b, const std::string& name, std::initializer_list<ValueId> xs) {
  auto in_node = b.scope(name);
  const ValueId first = *xs.begin();
  const auto n = static_cast<std::int64_t>(xs.size());
  ValueId y = b.node(
      "sum", Elementwise{"weighted_sum", 2.0 * static_cast<double>(n), Keeps::inputs},
      std::vector<ValueId>(xs), {b.weight("edge_weights", {n})}, TensorShape(b.shape(first)));
  y = b.activation("act", y, Activation::silu);
  const std::int64_t c = b.channels(y);
  y = b.convolution("depthwise", y, c, same(3, 1, c));
  return b.batch_norm("bn", b.convolution("pointwise", y, c, same(1, 1, 1, true)));
}

std::vector<ValueId> fusion_cell(NetworkBuilder& b, const std::vector<ValueId>& in,
                                 std::int64_t width) {
  auto up = [&](ValueId x, ValueId like) {
    const TensorShape& s = b.shape(like);
    return b.resize("up", x, std::vector<std::int64_t>(s.begin() + 1, s.end()));
  };
  auto down = [&](ValueId x) { return b.max_pool("down", x, 3, 2, 1); };
  std::vector<ValueId> top(5), out(5), lateral(5);
  for (std::size_t i = 0; i < 5; ++i)
    lateral[i] = to_width(b, "resample" + std::to_string(i), in[i], width);
  top[4] = lateral[4];
  for (std::size_t i = 4; i-- > 0;)
    top[i] = fuse(b, "top" + std::to_string(i), {lateral[i], up(top[i + 1], lateral[i])});
  out[0] = top[0];
  for (std::size_t i = 1; i < 5; ++i) {
    const std::string name = "out" + std::to_string(i);
    // Inner levels are resampled a second time for the way back.
    const ValueId again = to_width(b, "again" + std::to_string(i), in[i], width);
    out[i] = i < 4 ? fuse(b, name, {again, top[i], down(out[i - 1])})
                   : fuse(b, name, {again, down(out[i - 1])});
  }
  return out;
}

std::vector<ValueId> head(NetworkBuilder& b, const char* name, const std::vector<ValueId>& levels,
                          std::int64_t depth, std::int64_t out) {
  auto in_head = b.scope(name);
  std::vector<std::size_t> first;
  std::vector<ValueId> outputs;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    ValueId x = levels[level];
    for (std::int64_t i = 0; i <= depth; ++i) {
      const std::int64_t c = b.channels(x);
      if (level == 0)
        first.push_back(b.next_weight());
      else
        b.share_weights_from(first[static_cast<std::size_t>(i)]);
      x = b.convolution("depthwise" + std::to_string(i), x, c, same(3, 1, c));
      x = b.convolution("pointwise" + std::to_string(i), x, i < depth ? c : out,
                        same(1, 1, 1, true));
      b.stop_sharing();
      if (i < depth)
        x = b.activation("act",
                         b.batch_norm("bn" + std::to_string(i) + "." + std::to_string(level), x),
                         Activation::silu);
    }
    outputs.push_back(x);
  }
  return outputs;
}

}  // namespace

Model build_efficientdet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t width = spec.whole("pyramid_width");
  const ValueId image = b.input({3, spec.height(), spec.image_width()});
  std::vector<ValueId> levels =
      trunk(b, image, spec.number("width_coefficient"), spec.number("depth_coefficient"));
  levels.push_back(b.max_pool("p6", to_width(b, "p6_resample", levels.back(), width), 3, 2, 1));
  levels.push_back(b.max_pool("p7", levels.back(), 3, 2, 1));
  for (std::int64_t i = 0; i < spec.whole("pyramid_cells"); ++i) {
    auto in_cell = b.scope("cell" + std::to_string(i));
    levels = fusion_cell(b, levels, width);
  }
  const std::int64_t depth = spec.whole("head_layers"), anchors = 9;
  std::vector<ValueId> outputs =
      head(b, "class_net", levels, depth, anchors * spec.whole("classes"));
  for (ValueId v : head(b, "box_net", levels, depth, anchors * 4)) outputs.push_back(v);
  const ValueId boxes = b.select("detections", outputs, {100, 6});
  return network_model(spec, b.finish({boxes}), WorkUnit::image,
                       {spec.height(), spec.image_width()});
}

}  // namespace trigon
