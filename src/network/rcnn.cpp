// Two-stage detectors: Faster R-CNN (arXiv:1506.01497), Mask R-CNN (arXiv:1703.06870), Cascade
// R-CNN (arXiv:1712.00726), keypoints and panoptic segmentation on the same features
// (arXiv:1901.02446). The layouts C4, DC5 and FPN are those of Detectron2's model zoo.
//
// An image carries `regions` sampled boxes through the box head and `mask_regions` through the
// mask or keypoint head.

#include <algorithm>
#include <string>

#include "network/detection.hpp"
#include "network/families.hpp"

namespace trigon {
namespace {

// 3 x 3 over each region by itself: regions are a dimension that the window does not span.
ValueId region_convolution(NetworkBuilder& b, const std::string& name, ValueId x, std::int64_t out,
                           DetectorNorm norm, bool normalized) {
  ConvolutionOptions o;
  o.kernel = {1, 3, 3};
  o.padding = Extent{0, 1, 1};
  o.bias = !normalized;
  ValueId y = b.convolution(name, x, out, o);
  if (normalized) y = detector_norm(b, (name + "_norm").c_str(), y, norm);
  return b.activation("relu", y, Activation::relu);
}

struct Heads {
  std::int64_t classes = 80, background = 0;  // outputs of the background beside its score
  std::int64_t regions = 512, mask_regions = 128;
  std::int64_t fc = 1024, box_convolutions = 0;
  bool mask = false, keypoints = false, group_norm = false;
  std::int64_t cascade = 1;
};

ValueId box_outputs(NetworkBuilder& b, ValueId rows, const Heads& h) {
  const ValueId scores = b.linear("cls_score", rows, h.classes + 1);
  const ValueId deltas =
      b.linear("bbox_pred", rows, h.cascade > 1 ? 4 : 4 * (h.classes + h.background));
  return b.select("boxes", {scores, deltas}, {h.regions, 4});
}

ValueId box_head(NetworkBuilder& b, const std::vector<ValueId>& levels, ValueId boxes,
                 const Heads& h) {
  for (std::int64_t stage = 0; stage < h.cascade; ++stage) {
    auto in_head = b.scope("box_head" + std::to_string(stage));
    ValueId x = align_regions(b, levels, boxes, h.regions, 7);
    for (std::int64_t i = 0; i < h.box_convolutions; ++i)
      x = region_convolution(b, "conv" + std::to_string(i), x, 256, DetectorNorm::group, true);
    x = regions_to_rows(b, "flatten", x);
    const int dense = h.box_convolutions > 0 ? 1 : 2;
    for (int i = 0; i < dense; ++i)
      x = b.activation("relu", b.linear("fc" + std::to_string(i + 1), x, h.fc), Activation::relu);
    boxes = box_outputs(b, x, h);
  }
  return boxes;
}

ValueId mask_head(NetworkBuilder& b, ValueId x, const Heads& h, int convolutions) {
  auto in_head = b.scope("mask_head");
  for (int i = 0; i < convolutions; ++i)
    x = region_convolution(b, "conv" + std::to_string(i), x, 256, DetectorNorm::group,
                           h.group_norm);
  ConvolutionOptions up;
  up.kernel = {1, 2, 2};
  up.stride = {1, 2, 2};
  up.bias = true;
  x = b.activation("relu", b.transposed_convolution("deconv", x, 256, up), Activation::relu);
  ConvolutionOptions last;
  last.kernel = 1;
  last.bias = true;
  return b.convolution("predictor", x, h.classes + h.background, last);
}

// Eight 3 x 3 convolutions of 512, a transposed one to 17 maps, resized to 56 x 56.
ValueId keypoint_head(NetworkBuilder& b, ValueId x, const Heads& h) {
  auto in_head = b.scope("keypoint_head");
  for (int i = 0; i < 8; ++i)
    x = region_convolution(b, "conv" + std::to_string(i), x, 512, DetectorNorm::group, false);
  ConvolutionOptions up;
  up.kernel = {1, 4, 4};
  up.stride = {1, 2, 2};
  up.padding = Extent{0, 1, 1};
  up.bias = true;
  x = b.transposed_convolution("score", x, 17, up);
  return b.resize("upsample", x, {h.mask_regions, 56, 56});
}

// Kirillov et al. 2019: each level is convolved and doubled until stride 4, the sum is classified.
ValueId semantic_head(NetworkBuilder& b, const std::vector<ValueId>& levels, std::int64_t classes,
                      std::int64_t height, std::int64_t width) {
  auto in_head = b.scope("sem_seg");
  std::optional<ValueId> sum;
  const TensorShape finest = b.shape(levels.front());
  for (std::size_t i = 0; i < std::min<std::size_t>(levels.size(), 4); ++i) {
    auto in_level = b.scope("p" + std::to_string(i + 2));
    ValueId x = levels[i];
    DetectorUnit o;
    o.norm = DetectorNorm::group;
    for (std::size_t k = 0; k < std::max<std::size_t>(1, i); ++k) {
      x = unit(b, ("unit" + std::to_string(k)).c_str(), x, 128, o);
      if (i == 0) continue;
      const TensorShape& to = k + 1 == i ? finest : b.shape(levels[i - k - 1]);
      x = b.resize("upsample", x, std::vector<std::int64_t>(to.begin() + 1, to.end()));
    }
    sum = sum ? b.add("sum", *sum, x) : x;
  }
  ConvolutionOptions last;
  last.kernel = 1;
  last.bias = true;
  const ValueId logits = b.convolution("predictor", *sum, classes, last);
  return b.resize("full_size", logits, {height, width});
}

// C4: the last stage of the backbone runs on every region. Regions are laid side by side, so that
// one call of the stage covers them all; at 14 x 14 a border of one does not reach another.
ValueId stage_on_regions(NetworkBuilder& b, ValueId level, ValueId boxes, std::int64_t regions,
                         const BackboneFacts& f) {
  const ValueId x = align_regions(b, {level}, boxes, regions, 14);
  const ValueId rows = b.reshape("regions_as_rows", x, {b.channels(x), regions * 14, 14});
  const ValueId y = residual_stage(b, rows, f, 3, 2);
  return b.reshape("rows_as_regions", y, {b.channels(y), regions, 7, 7});
}

}  // namespace

Model build_rcnn(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const std::string layout = spec.text("layout", "fpn");
  const BackboneFacts f = backbone_facts(spec);
  Heads h;
  h.classes = spec.whole("classes");
  h.background = spec.whole("background_outputs", 0);
  h.regions = spec.whole("regions", 512);
  h.mask_regions = spec.whole("mask_regions", h.regions / 4);
  h.mask = spec.flag("mask");
  h.keypoints = spec.flag("keypoints");
  h.group_norm = f.norm == DetectorNorm::group || spec.flag("normalized_heads");
  h.box_convolutions = spec.whole("box_convolutions", 0);
  h.cascade = spec.whole("cascade", 1);
  const bool proposals_only = spec.flag("proposals_only"), given = spec.flag("given_proposals");
  const ValueId image = b.input({3, spec.height(), spec.image_width()});
  const std::int64_t kept = std::max<std::int64_t>(h.regions, 1000);
  std::vector<ValueId> outputs;
  auto model = [&](std::vector<ValueId> out) {
    return network_model(spec, b.finish(std::move(out)), WorkUnit::image,
                         {spec.height(), spec.image_width()});
  };
  if (layout == "c4") {
    const ValueId c4 = residual_backbone(b, image, f, 3).back();
    const ValueId boxes = region_proposals(b, {c4}, 15, kept);
    if (proposals_only) return model({boxes});
    const ValueId features = stage_on_regions(b, c4, boxes, h.regions, f);
    const ValueId pooled = b.reduce("avgpool", features, {h.regions, b.channels(features)});
    outputs.push_back(box_outputs(b, pooled, h));
    if (h.mask) {
      const ValueId some =
          b.copy("positives", {features}, {b.channels(features), h.mask_regions, 7, 7});
      outputs.push_back(mask_head(b, some, h, 0));
    }
    return model(outputs);
  }
  std::vector<ValueId> stages =
      spec.has("regnet_widths") ? regnet_backbone(b, image, spec) : residual_backbone(b, image, f);
  std::vector<ValueId> levels, pooled_levels;
  if (layout == "dc5") {
    levels = pooled_levels = {stages.back()};
  } else {
    levels = feature_pyramid(b, stages, 256,
                             f.norm == DetectorNorm::group ? f.norm : DetectorNorm::batch,
                             spec.flag("normalized_pyramid"));
    pooled_levels = levels;
    levels.push_back(b.max_pool("p6", levels.back(), 1, 2));
  }
  const ValueId boxes =
      given ? b.input({h.regions, 4}) : region_proposals(b, levels, layout == "dc5" ? 15 : 3, kept);
  if (proposals_only) return model({boxes});
  outputs.push_back(box_head(b, pooled_levels, boxes, h));
  if (h.mask)
    outputs.push_back(
        mask_head(b, align_regions(b, pooled_levels, outputs[0], h.mask_regions, 14), h, 4));
  if (h.keypoints)
    outputs.push_back(
        keypoint_head(b, align_regions(b, pooled_levels, outputs[0], h.mask_regions, 14), h));
  if (spec.has("stuff_classes"))
    outputs.push_back(semantic_head(b, pooled_levels, spec.whole("stuff_classes"), spec.height(),
                                    spec.image_width()));
  return model(outputs);
}

}  // namespace trigon
