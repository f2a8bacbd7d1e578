// HRNet: Wang et al. 2019, arXiv:1908.07919. Branches of 1, 2, 4 and 8 times the stride run side by
// side and exchange their maps after every module; heads and sizes as timm's hrnet.py.

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

ValueId unit(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
             std::int64_t kernel = 3, std::int64_t stride = 1, Activation act = Activation::relu) {
  UnitOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.act = act;
  return convolution_unit(b, name, x, out, o);
}

ValueId relu(NetworkBuilder& b, ValueId x) { return b.activation("relu", x, Activation::relu); }

ValueId basic(NetworkBuilder& b, ValueId x) {
  const std::int64_t c = b.channels(x);
  ValueId y = unit(b, "conv2", unit(b, "conv1", x, c), c, 3, 1, Activation::none);
  return relu(b, b.add("add", y, x));
}

ValueId bottleneck(NetworkBuilder& b, ValueId x, std::int64_t width) {
  ValueId y = unit(b, "conv2", unit(b, "conv1", x, width, 1), width);
  y = unit(b, "conv3", y, 4 * width, 1, 1, Activation::none);
  const bool same = b.channels(x) == 4 * width;
  return relu(
      b, b.add("add", y, same ? x : unit(b, "downsample", x, 4 * width, 1, 1, Activation::none)));
}

// What branch i receives: lower ones enlarged, higher ones by strided convolutions.
ValueId exchanged(NetworkBuilder& b, const std::vector<ValueId>& x, std::size_t i) {
  std::optional<ValueId> sum;
  for (std::size_t j = 0; j < x.size(); ++j) {
    auto scope = b.scope("fuse." + std::to_string(i) + "." + std::to_string(j));
    ValueId y = x[j];
    if (j > i) {
      y = unit(b, "conv", y, b.channels(x[i]), 1, 1, Activation::none);
      y = b.upsample("up", y, std::int64_t{1} << (j - i));
    }
    for (std::size_t k = j; k < i; ++k) {
      const bool last = k + 1 == i;
      y = unit(b, "down" + std::to_string(k), y, b.channels(last ? x[i] : x[j]), 3, 2,
               last ? Activation::none : Activation::relu);
    }
    sum = sum ? b.add("add", *sum, y) : y;
  }
  return relu(b, *sum);
}

// One more branch than before, each with its own width.
std::vector<ValueId> transition(NetworkBuilder& b, const std::vector<ValueId>& x,
                                std::int64_t width) {
  std::vector<ValueId> out;
  for (std::size_t i = 0; i <= x.size(); ++i) {
    const std::string name = "transition" + std::to_string(i);
    const std::int64_t c = width << i;
    if (i == x.size())
      out.push_back(unit(b, name, x.back(), c, 3, 2));
    else
      out.push_back(b.channels(x[i]) == c ? x[i] : unit(b, name, x[i], c));
  }
  return out;
}

}  // namespace

Model build_hrnet(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::int64_t width = spec.whole("width"), first = spec.whole("first_width", 64),
                     blocks = spec.whole("blocks", 4);
  const auto modules = spec.wholes("modules");
  ValueId stem = unit(b, "conv2", unit(b, "conv1", image_input(b, spec), 64, 3, 2), 64, 3, 2);
  for (std::int64_t i = 0; i < spec.whole("first_blocks", 4); ++i) {
    auto scope = b.scope("layer1." + std::to_string(i));
    stem = bottleneck(b, stem, first);
  }
  std::vector<ValueId> x{stem};
  for (std::size_t s = 0; s < 3; ++s) {
    auto in_stage = b.scope("stage" + std::to_string(s + 2));
    x = transition(b, x, width);
    for (std::int64_t m = 0; m < of_stage(modules, s, std::int64_t{1}); ++m) {
      auto in_module = b.scope(std::to_string(m));
      for (std::size_t i = 0; i < x.size(); ++i)
        for (std::int64_t k = 0; k < blocks; ++k) {
          auto in_block = b.scope("branches." + std::to_string(i) + "." + std::to_string(k));
          x[i] = basic(b, x[i]);
        }
      std::vector<ValueId> mixed;
      for (std::size_t i = 0; i < x.size(); ++i) mixed.push_back(exchanged(b, x, i));
      x = mixed;
    }
  }
  // The head: each branch widened, then added down to the smallest.
  ConvolutionOptions o;
  o.bias = true;
  std::optional<ValueId> y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto scope = b.scope("head." + std::to_string(i));
    const ValueId wide = bottleneck(b, x[i], std::int64_t{32} << i);
    if (y) {
      o.stride = 2;
      const ValueId down = b.convolution("down", *y, b.channels(wide), o);
      y = b.add("add", wide, relu(b, b.batch_norm("down.bn", down)));
    } else {
      y = wide;
    }
  }
  o.kernel = 1;
  o.stride = 1;
  const ValueId last = relu(b, b.batch_norm("final.bn", b.convolution("final", *y, 2048, o)));
  return image_model(spec, b, classifier(b, spec, "classifier", last));
}

}  // namespace trigon
