#pragma once
// Parts that object detectors share: a residual backbone with its four stages, a feature pyramid,
// and layers that run once for each region of interest.

#include <vector>

#include "network/builder.hpp"
#include "network/spec.hpp"

namespace trigon {

enum class DetectorNorm : std::uint8_t {
  batch,   // trained, with running statistics
  frozen,  // statistics and affine parameters stay as they were: one scale and shift
  group,   // 32 groups
};

// A convolution with its normalization and ReLU as detectors combine them.
struct DetectorUnit {
  Extent kernel = 3;
  Extent stride = 1;
  Extent dilation = 1;
  std::int64_t groups = 1;
  bool relu = true;
  bool trains = true;
  DetectorNorm norm = DetectorNorm::frozen;
};
ValueId detector_norm(NetworkBuilder& b, const char* name, ValueId x, DetectorNorm norm);
ValueId unit(NetworkBuilder& b, const char* name, ValueId x, std::int64_t out,
             const DetectorUnit& o);

// Facts: `depths`, `groups`, `width_per_group`, `norm` ("batch", "frozen", "group"),
// `frozen_stages` (stem and stages that do not train: 2 is stem and first stage),
// `dilated_stage` (the last stage keeps its input's size), `deformable` (3 x 3 convolutions of
// stages two to four have learned offsets). He et al. 2015, arXiv:1512.03385.
struct BackboneFacts {
  std::vector<std::int64_t> depths = {3, 4, 6, 3};
  std::int64_t groups = 1, width_per_group = 64;
  DetectorNorm norm = DetectorNorm::frozen;
  std::int64_t frozen_stages = 0;
  bool dilated_last = false;
  bool deformable = false;
};
BackboneFacts backbone_facts(const NetworkSpec& spec);
// The outputs of the first `stages` stages, at strides 4, 8, 16, 32.
std::vector<ValueId> residual_backbone(NetworkBuilder& b, ValueId image, const BackboneFacts& f,
                                       std::size_t stages = 4);
// One stage on `x`: `stage` counts from 0; stride 1 for the first, else 2.
ValueId residual_stage(NetworkBuilder& b, ValueId x, const BackboneFacts& f, std::size_t stage,
                       std::int64_t stride);

// A RegNet of the facts `regnet_widths`, `depths`, `regnet_group_width`, `squeeze_excite`
// (Radosavovic et al. 2020, arXiv:2003.13678).
std::vector<ValueId> regnet_backbone(NetworkBuilder& b, ValueId image, const NetworkSpec& spec);

// Lin et al. 2016, arXiv:1612.03144: 1 x 1 laterals, sums from the coarsest down, 3 x 3 outputs.
// Finest level first.
std::vector<ValueId> feature_pyramid(NetworkBuilder& b, const std::vector<ValueId>& stages,
                                     std::int64_t out, DetectorNorm norm, bool normalized);

// Region proposals on each level: a shared 3 x 3 convolution, objectness and four offsets of each
// anchor, then top-k and suppression to `kept` boxes (Ren et al. 2015, arXiv:1506.01497).
ValueId region_proposals(NetworkBuilder& b, const std::vector<ValueId>& levels,
                         std::int64_t anchors, std::int64_t kept);

// Features of `regions` boxes, [channels, regions, side, side] (He et al. 2017, arXiv:1703.06870).
ValueId align_regions(NetworkBuilder& b, const std::vector<ValueId>& levels, ValueId boxes,
                      std::int64_t regions, std::int64_t side);
// [channels, regions, side, side] -> [regions, channels * side * side].
ValueId regions_to_rows(NetworkBuilder& b, const char* name, ValueId x);

}  // namespace trigon
