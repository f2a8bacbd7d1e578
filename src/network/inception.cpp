// Networks of parallel branches: GoogLeNet (arXiv:1409.4842, with the 3 x 3 convolutions of
// torchvision's third branch), Inception-v3 (arXiv:1512.00567) and -v4 (arXiv:1602.07261),
// Xception (arXiv:1610.02357).

#include "network/convolution_blocks.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

struct Step {
  std::int64_t out;
  Extent kernel = 1;
  std::int64_t stride = 1;
  bool padded = true;
};

class Branches {
 public:
  explicit Branches(NetworkBuilder& b) : b_(b) {}

  ValueId path(ValueId x, std::initializer_list<Step> steps) {
    for (const Step& s : steps) {
      UnitOptions o;
      o.kernel = s.kernel;
      o.stride = s.stride;
      if (!s.padded) o.padding = Extent(0);
      x = convolution_unit(b_, "unit" + std::to_string(count_++), x, s.out, o);
    }
    return x;
  }
  ValueId pooled(ValueId x, std::int64_t out) {
    return path(b_.average_pool("pool", x, 3, 1, 1), {{out}});
  }
  ValueId largest(ValueId x) { return b_.max_pool("pool", x, 3, 2); }
  ValueId joined(const std::vector<ValueId>& parts) { return b_.concatenate("cat", parts); }
  // Two branches out of one: 1 x 3 and 3 x 1.
  ValueId fork(ValueId x, std::int64_t out) {
    return joined({path(x, {{out, kRow3}}), path(x, {{out, kColumn3}})});
  }

  const Extent kRow3{1, 3}, kColumn3{3, 1}, kRow7{1, 7}, kColumn7{7, 1};

 private:
  NetworkBuilder& b_;
  int count_ = 0;
};

ValueId googlenet(NetworkBuilder& b, Branches& p, ValueId x) {
  struct Module {
    std::int64_t one, three_in, three, five_in, five, pool;
    bool pool_before;
  };
  constexpr Module kModules[] = {
      {64, 96, 128, 16, 32, 32, false},     {128, 128, 192, 32, 96, 64, false},
      {192, 96, 208, 16, 48, 64, true},     {160, 112, 224, 24, 64, 64, false},
      {128, 128, 256, 24, 64, 64, false},   {112, 144, 288, 32, 64, 64, false},
      {256, 160, 320, 32, 128, 128, false}, {256, 160, 320, 32, 128, 128, true},
      {384, 192, 384, 48, 128, 128, false}};
  x = b.max_pool("pool", p.path(x, {{64, 7, 2}}), 3, 2, 0, true);
  x = b.max_pool("pool", p.path(x, {{64}, {192, 3}}), 3, 2, 0, true);
  bool first = true;
  for (const Module& m : kModules) {
    if (m.pool_before) x = b.max_pool("pool", x, first ? 3 : 2, 2, 0, true);
    if (m.pool_before) first = false;
    const ValueId pool = b.max_pool("pool", x, 3, 1, 1, true);
    x = p.joined({p.path(x, {{m.one}}), p.path(x, {{m.three_in}, {m.three, 3}}),
                  p.path(x, {{m.five_in}, {m.five, 3}}), p.path(pool, {{m.pool}})});
  }
  return x;
}

ValueId inception_v3(Branches& p, ValueId x) {
  x = p.path(x, {{32, 3, 2, false}, {32, 3, 1, false}, {64, 3}});
  x = p.largest(p.path(p.largest(x), {{80}, {192, 3, 1, false}}));
  for (std::int64_t pool : {32, 64, 64})
    x = p.joined({p.path(x, {{64}}), p.path(x, {{48}, {64, 5}}),
                  p.path(x, {{64}, {96, 3}, {96, 3}}), p.pooled(x, pool)});
  x = p.joined({p.path(x, {{384, 3, 2, false}}), p.path(x, {{64}, {96, 3}, {96, 3, 2, false}}),
                p.largest(x)});
  for (std::int64_t c : {128, 160, 160, 192})
    x = p.joined({p.path(x, {{192}}), p.path(x, {{c}, {c, p.kRow7}, {192, p.kColumn7}}),
                  p.path(x, {{c}, {c, p.kColumn7}, {c, p.kRow7}, {c, p.kColumn7}, {192, p.kRow7}}),
                  p.pooled(x, 192)});
  x = p.joined({p.path(x, {{192}, {320, 3, 2, false}}),
                p.path(x, {{192}, {192, p.kRow7}, {192, p.kColumn7}, {192, 3, 2, false}}),
                p.largest(x)});
  for (int i = 0; i < 2; ++i)
    x = p.joined({p.path(x, {{320}}), p.fork(p.path(x, {{384}}), 384),
                  p.fork(p.path(x, {{448}, {384, 3}}), 384), p.pooled(x, 192)});
  return x;
}

ValueId inception_v4(Branches& p, ValueId x) {
  x = p.path(x, {{32, 3, 2, false}, {32, 3, 1, false}, {64, 3}});
  x = p.joined({p.largest(x), p.path(x, {{96, 3, 2, false}})});
  x = p.joined({p.path(x, {{64}, {96, 3, 1, false}}),
                p.path(x, {{64}, {64, p.kRow7}, {64, p.kColumn7}, {96, 3, 1, false}})});
  x = p.joined({p.path(x, {{192, 3, 2, false}}), p.largest(x)});
  for (int i = 0; i < 4; ++i)
    x = p.joined({p.path(x, {{96}}), p.path(x, {{64}, {96, 3}}),
                  p.path(x, {{64}, {96, 3}, {96, 3}}), p.pooled(x, 96)});
  x = p.joined({p.path(x, {{384, 3, 2, false}}), p.path(x, {{192}, {224, 3}, {256, 3, 2, false}}),
                p.largest(x)});
  for (int i = 0; i < 7; ++i)
    x = p.joined(
        {p.path(x, {{384}}), p.path(x, {{192}, {224, p.kRow7}, {256, p.kColumn7}}),
         p.path(x, {{192}, {192, p.kColumn7}, {224, p.kRow7}, {224, p.kColumn7}, {256, p.kRow7}}),
         p.pooled(x, 128)});
  x = p.joined({p.path(x, {{192}, {192, 3, 2, false}}),
                p.path(x, {{256}, {256, p.kRow7}, {320, p.kColumn7}, {320, 3, 2, false}}),
                p.largest(x)});
  for (int i = 0; i < 3; ++i)
    x = p.joined({p.path(x, {{256}}), p.fork(p.path(x, {{384}}), 256),
                  p.fork(p.path(x, {{384}, {448, p.kColumn3}, {512, p.kRow3}}), 256),
                  p.pooled(x, 256)});
  return x;
}

// Depthwise 3 x 3, then pointwise: no activation between.
ValueId separable(NetworkBuilder& b, std::string_view name, ValueId x, std::int64_t out) {
  const std::string n(name);
  ConvolutionOptions depthwise, pointwise;
  depthwise.groups = b.channels(x);
  pointwise.kernel = 1;
  x = b.convolution(n + ".pointwise", b.convolution(n + ".conv1", x, b.channels(x), depthwise), out,
                    pointwise);
  return b.batch_norm(n + ".bn", x);
}

ValueId xception(NetworkBuilder& b, Branches& p, ValueId x) {
  auto relu = [&](ValueId v) { return b.activation("relu", v, Activation::relu); };
  struct Module {
    std::int64_t out, units, stride;
    bool grow_first;
  };
  std::vector<Module> modules{{128, 2, 2, true}, {256, 2, 2, true}, {728, 2, 2, true}};
  modules.insert(modules.end(), 8, {728, 3, 1, true});
  modules.push_back({1024, 2, 2, false});
  x = p.path(x, {{32, 3, 2, false}, {64, 3, 1, false}});
  for (std::size_t i = 0; i < modules.size(); ++i) {
    auto scope = b.scope("block" + std::to_string(i + 1));
    const Module& m = modules[i];
    ValueId y = x;
    for (std::int64_t k = 0; k < m.units; ++k) {
      if (k > 0 || i > 0) y = relu(y);
      const bool narrow = !m.grow_first && k + 1 < m.units;
      y = separable(b, "rep" + std::to_string(k), y, narrow ? b.channels(x) : m.out);
    }
    ValueId shortcut = x;
    if (m.stride != 1) {
      y = b.max_pool("pool", y, 3, 2, 1);
      UnitOptions o;
      o.stride = 2;
      o.act = Activation::none;
      shortcut = convolution_unit(b, "skip", x, m.out, o);
    }
    x = b.add("add", y, shortcut);
  }
  x = relu(separable(b, "conv3", x, 1536));
  return relu(separable(b, "conv4", x, 2048));
}

}  // namespace

Model build_inception(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  Branches p(b);
  const std::string kind = spec.text("kind_of_blocks");
  ValueId x = image_input(b, spec);
  x = kind == "googlenet" ? googlenet(b, p, x)
      : kind == "v3"      ? inception_v3(p, x)
      : kind == "v4"      ? inception_v4(p, x)
                          : xception(b, p, x);
  return image_model(spec, b, classifier(b, spec, "fc", x));
}

}  // namespace trigon
