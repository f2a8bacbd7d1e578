#include "network/detection.hpp"

#include <algorithm>
#include <string>

namespace trigon {
namespace {

DetectorNorm norm_named(const std::string& name) {
  if (name == "batch") return DetectorNorm::batch;
  if (name == "group") return DetectorNorm::group;
  return DetectorNorm::frozen;
}

// Offsets of a 3 x 3 window come from a convolution of their own; the nine samples of each position
// are written out as channels, so that a 1 x 1 convolution on them is the 3 x 3 one (Dai et al.
// 2017, arXiv:1703.06211). A sample is bilinear: four neighbours, weighted and summed.
ValueId sampled_windows(NetworkBuilder& b, ValueId x, std::int64_t stride) {
  ConvolutionOptions o;
  o.stride = stride;
  o.bias = true;
  const ValueId offsets = b.convolution("conv2_offset", x, 18, o);
  TensorShape columns = b.shape(offsets);
  columns[0] = 9 * b.channels(x);
  return b.node("sample", Elementwise{"bilinear_sample", 8, Keeps::inputs}, {x, offsets}, {},
                std::move(columns));
}

}  // namespace

ValueId detector_norm(NetworkBuilder& b, const char* name, ValueId x, DetectorNorm norm) {
  switch (norm) {
    case DetectorNorm::batch:
      return b.batch_norm(name, x);
    case DetectorNorm::group:
      return b.group_norm(name, x, 32);
    case DetectorNorm::frozen:
      break;
  }
  const std::int64_t c = b.channels(x);
  const std::string n(name);
  return b.node(
      name, Elementwise{"frozen_batch_norm", 2, Keeps::nothing}, {x},
      {b.weight(n + ".weight", {c}, false), b.weight(n + ".bias", {c}, false),
       b.weight(n + ".running_mean", {c}, false), b.weight(n + ".running_var", {c}, false)},
      TensorShape(b.shape(x)));
}

ValueId unit(NetworkBuilder& b, const char* name, ValueId x, std::int64_t out,
             const DetectorUnit& o) {
  auto in_unit = b.scope(name);
  ConvolutionOptions c;
  c.kernel = o.kernel;
  c.stride = o.stride;
  c.dilation = o.dilation;
  c.groups = o.groups;
  c.trains = o.trains;
  x = detector_norm(b, "norm", b.convolution("conv", x, out, c), o.norm);
  return o.relu ? b.activation("relu", x, Activation::relu) : x;
}

BackboneFacts backbone_facts(const NetworkSpec& spec) {
  BackboneFacts f;
  f.depths = spec.wholes("depths");
  f.groups = spec.whole("groups", 1);
  f.width_per_group = spec.whole("width_per_group", 64);
  f.norm = norm_named(spec.text("norm", "frozen"));
  f.frozen_stages = spec.whole("frozen_stages", 0);
  f.dilated_last = spec.flag("dilated_stage");
  f.deformable = spec.flag("deformable");
  return f;
}

ValueId residual_stage(NetworkBuilder& b, ValueId x, const BackboneFacts& f, std::size_t stage,
                       std::int64_t stride) {
  auto in_stage = b.scope("res" + std::to_string(stage + 2));
  const std::int64_t planes = std::int64_t{64} << stage;
  const std::int64_t width = planes * f.width_per_group / 64 * f.groups, out = planes * 4;
  const bool dilated = f.dilated_last && stage == 3;
  DetectorUnit o;
  o.norm = f.norm;
  o.trains = static_cast<std::int64_t>(stage) + 2 > f.frozen_stages;
  for (std::int64_t i = 0; i < f.depths[stage]; ++i) {
    auto in_block = b.scope(std::to_string(i));
    const std::int64_t s = i == 0 && !dilated ? stride : 1;
    DetectorUnit one = o, three = o, last = o, shortcut = o;
    one.kernel = last.kernel = shortcut.kernel = 1;
    last.relu = shortcut.relu = false;
    three.groups = f.groups;
    shortcut.stride = s;
    if (dilated) three.dilation = 2;
    ValueId y = unit(b, "conv1", x, width, one);
    three.stride = s;
    if (f.deformable && stage > 0) {
      y = sampled_windows(b, y, s);
      three.kernel = three.stride = 1;
    }
    y = unit(b, "conv3", unit(b, "conv2", y, width, three), out, last);
    if (s != 1 || b.channels(x) != out) x = unit(b, "shortcut", x, out, shortcut);
    x = b.activation("relu", b.add("add", y, x), Activation::relu);
  }
  return x;
}

std::vector<ValueId> residual_backbone(NetworkBuilder& b, ValueId image, const BackboneFacts& f,
                                       std::size_t stages) {
  auto in_backbone = b.scope("backbone");
  DetectorUnit stem;
  stem.kernel = 7;
  stem.stride = 2;
  stem.norm = f.norm;
  stem.trains = f.frozen_stages < 1;
  ValueId x = b.max_pool("maxpool", unit(b, "stem", image, 64, stem), 3, 2, 1);
  std::vector<ValueId> out;
  for (std::size_t s = 0; s < std::min(stages, f.depths.size()); ++s)
    out.push_back(x = residual_stage(b, x, f, s, s == 0 ? 1 : 2));
  return out;
}

std::vector<ValueId> regnet_backbone(NetworkBuilder& b, ValueId image, const NetworkSpec& spec) {
  auto in_backbone = b.scope("backbone");
  const auto widths = spec.wholes("regnet_widths"), depths = spec.wholes("depths");
  const std::int64_t group_width = spec.whole("regnet_group_width");
  const bool squeeze = spec.flag("squeeze_excite");
  DetectorUnit o;
  o.norm = norm_named(spec.text("norm", "frozen"));
  DetectorUnit stem = o;
  stem.stride = 2;
  stem.trains = spec.whole("frozen_stages", 0) < 1;
  ValueId x = unit(b, "stem", image, 32, stem);
  std::vector<ValueId> out;
  for (std::size_t s = 0; s < widths.size() && s < depths.size(); ++s) {
    auto in_stage = b.scope("s" + std::to_string(s + 1));
    o.trains = static_cast<std::int64_t>(s) + 2 > spec.whole("frozen_stages", 0);
    for (std::int64_t i = 0; i < depths[s]; ++i) {
      auto in_block = b.scope("b" + std::to_string(i + 1));
      DetectorUnit one = o, three = o, last = o, shortcut = o;
      one.kernel = last.kernel = shortcut.kernel = 1;
      last.relu = shortcut.relu = false;
      three.groups = std::max<std::int64_t>(1, widths[s] / group_width);
      three.stride = shortcut.stride = i == 0 ? 2 : 1;
      const std::int64_t in = b.channels(x);
      ValueId y = unit(b, "b", unit(b, "a", x, widths[s], one), widths[s], three);
      if (squeeze) {
        // A quarter of the block's input width.
        auto in_se = b.scope("se");
        ValueId g = b.global_average_pool("avgpool", y);
        g = b.activation("relu", b.linear("fc1", g, std::max<std::int64_t>(1, in / 4)),
                         Activation::relu);
        g = b.activation("sigmoid", b.linear("fc2", g, widths[s]), Activation::sigmoid);
        y = b.multiply("mul", y, g);
      }
      y = unit(b, "c", y, widths[s], last);
      if (i == 0) x = unit(b, "proj", x, widths[s], shortcut);
      x = b.activation("relu", b.add("add", y, x), Activation::relu);
    }
    out.push_back(x);
  }
  return out;
}

std::vector<ValueId> feature_pyramid(NetworkBuilder& b, const std::vector<ValueId>& stages,
                                     std::int64_t out, DetectorNorm norm, bool normalized) {
  auto in_fpn = b.scope("fpn");
  std::vector<ValueId> levels(stages.size());
  std::optional<ValueId> above;
  for (std::size_t i = stages.size(); i-- > 0;) {
    const std::string level = std::to_string(i);
    ConvolutionOptions o;
    o.kernel = 1;
    o.bias = !normalized;
    ValueId x = b.convolution("lateral" + level, stages[i], out, o);
    if (normalized) x = detector_norm(b, ("lateral_norm" + level).c_str(), x, norm);
    if (above) {
      const TensorShape& s = b.shape(x);
      const ValueId up =
          b.resize("upsample" + level, *above, std::vector<std::int64_t>(s.begin() + 1, s.end()));
      x = b.add("merge" + level, x, up);
    }
    above = x;
    o.kernel = 3;
    levels[i] = b.convolution("output" + level, x, out, o);
    if (normalized) levels[i] = detector_norm(b, ("output_norm" + level).c_str(), levels[i], norm);
  }
  return levels;
}

ValueId region_proposals(NetworkBuilder& b, const std::vector<ValueId>& levels,
                         std::int64_t anchors, std::int64_t kept) {
  auto in_rpn = b.scope("rpn");
  std::vector<ValueId> outputs;
  const std::size_t first = b.next_weight();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (i > 0) b.share_weights_from(first);
    ConvolutionOptions o;
    o.bias = true;
    const ValueId x = b.activation(
        "relu", b.convolution("conv", levels[i], b.channels(levels[i]), o), Activation::relu);
    o.kernel = 1;
    outputs.push_back(b.convolution("objectness", x, anchors, o));
    outputs.push_back(b.convolution("deltas", x, 4 * anchors, o));
  }
  b.stop_sharing();
  return b.select("proposals", outputs, {kept, 4});
}

ValueId align_regions(NetworkBuilder& b, const std::vector<ValueId>& levels, ValueId boxes,
                      std::int64_t regions, std::int64_t side) {
  std::vector<ValueId> inputs = levels;
  inputs.push_back(boxes);
  return b.copy("roi_align", std::move(inputs), {b.channels(levels.front()), regions, side, side});
}

ValueId regions_to_rows(NetworkBuilder& b, const char* name, ValueId x) {
  const TensorShape s = b.shape(x);
  return b.transpose(name, x, {s[1], elements(s) / s[1]});
}

}  // namespace trigon
