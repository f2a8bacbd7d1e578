// Dual path networks: Chen et al. 2017, arXiv:1707.01629, table 1. Each block adds to one part of
// its maps and appends to the other.

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

// Normalization and activation come before each convolution.
ValueId unit(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out,
             std::int64_t kernel = 1, std::int64_t stride = 1, std::int64_t groups = 1) {
  const std::string n(name);
  ConvolutionOptions o;
  o.kernel = kernel;
  o.stride = stride;
  o.groups = groups;
  x = b.activation(n + ".relu", b.batch_norm(n + ".bn", x), Activation::relu);
  return b.convolution(n + ".conv", x, out, o);
}

struct Paths {
  ValueId added, appended;
};

struct Stage {
  std::int64_t inner = 96, width = 256, grows = 16, groups = 32;
};

Paths dual_block(NetworkBuilder& b, ValueId x, std::optional<Paths> before, std::int64_t stride,
                 const Stage& s) {
  if (!before) {
    const ValueId both = unit(b, "c1x1_w", x, s.width + 2 * s.grows, 1, stride);
    const auto parts = b.split("split_w", both, 0, {s.width, 2 * s.grows});
    before = Paths{parts[0], parts[1]};
  }
  ValueId y = unit(b, "c3x3_b", unit(b, "c1x1_a", x, s.inner), s.inner, 3, stride, s.groups);
  const auto parts =
      b.split("split", unit(b, "c1x1_c", y, s.width + s.grows), 0, {s.width, s.grows});
  return {b.add("add", before->added, parts[0]),
          b.concatenate("append", {before->appended, parts[1]})};
}

}  // namespace

Model build_dpn(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const bool small = spec.flag("small");
  const auto depths = spec.wholes("depths"), grows = spec.wholes("grows");
  UnitOptions stem;
  stem.kernel = small ? 3 : 7;
  stem.stride = 2;
  ValueId x = convolution_unit(b, "conv1", image_input(b, spec), spec.whole("stem_width"), stem);
  x = b.max_pool("pool", x, 3, 2, 1);
  Stage s;
  s.groups = spec.whole("groups", 32);
  for (std::size_t i = 0; i < depths.size(); ++i) {
    auto in_stage = b.scope("conv" + std::to_string(i + 2));
    s.width = (small ? 64 : 256) << i;
    s.inner = spec.whole("inner") << i;
    s.grows = of_stage(grows, i, std::int64_t{16});
    std::optional<Paths> paths;
    for (std::int64_t k = 0; k < depths[i]; ++k) {
      auto in_block = b.scope(std::to_string(k + 1));
      paths = dual_block(b, x, paths, k == 0 && i > 0 ? 2 : 1, s);
      x = b.concatenate("cat", {paths->added, paths->appended});
    }
  }
  x = b.activation("final.relu", b.batch_norm("final.bn", x), Activation::relu);
  return image_model(spec, b, classifier(b, spec, "classifier", x));
}

}  // namespace trigon
