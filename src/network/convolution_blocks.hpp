#pragma once
// What the convolutional families share: a convolution with its normalization and activation,
// channel attention, anti-aliased pooling, the classifier.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "network/builder.hpp"
#include "network/spec.hpp"

namespace trigon {

struct UnitOptions {
  Extent kernel = 1;
  Extent stride = 1;
  std::int64_t groups = 1;
  Activation act = Activation::relu;
  bool same = false;  // TensorFlow's padding
  std::optional<Extent> padding = std::nullopt;
  Extent dilation = 1;
};

// Convolution without bias, batch normalization, activation: "name.conv", "name.bn".
ValueId convolution_unit(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
                         const UnitOptions& o = {});

// Squeeze and excitation (Hu et al. 2017, arXiv:1709.01507): the mean of each channel, two
// 1 x 1 convolutions with bias over `reduced` channels, a gate on each channel.
struct Excitation {
  std::int64_t reduced = 16;
  Activation act = Activation::relu;
  Activation gate = Activation::sigmoid;
};
ValueId squeeze_excite(NetworkBuilder& b, std::string_view name, ValueId x, const Excitation& e);

// Efficient channel attention (Wang et al. 2019, arXiv:1910.03151): a convolution along the means
// of the channels, whose kernel is the odd number next to (log2(channels) + 1) / 2.
ValueId channel_attention(NetworkBuilder& b, std::string_view name, ValueId x);

// A fixed 3 x 3 binomial filter with stride 2 (Zhang 2019, arXiv:1904.11486).
ValueId blur_pool(NetworkBuilder& b, std::string_view name, ValueId x);

// Mean over the image, then "fc" to the sheet's `classes` (1000).
ValueId classifier(NetworkBuilder& b, const NetworkSpec& spec, std::string_view name, ValueId x);

ValueId image_input(NetworkBuilder& b, const NetworkSpec& spec);
Model image_model(const NetworkSpec& spec, NetworkBuilder& b, ValueId output);

// The multiple of `divisor` nearest to v, never less than `limit` of it (MobileNet's rounding,
// arXiv:1801.04381; limit 0.9).
std::int64_t round_channels(double v, std::int64_t divisor = 8, double limit = 0.9);

// A list with one entry a stage; the last one stands for all that follow.
template <class T>
T of_stage(const std::vector<T>& list, std::size_t stage, T otherwise = T{}) {
  return list.empty() ? otherwise : list[std::min(stage, list.size() - 1)];
}

// "relu", "silu", ...: as the sheets write them. Nothing for other words.
std::optional<Activation> activation_named(std::string_view name);

}  // namespace trigon
