#include <gtest/gtest.h>

#include "network/network_testing.hpp"

namespace trigon {
namespace {

// Weights that frameworks count as parameters: all but statistics and frozen scales, whether the
// recipe trains them or not.
std::int64_t parameters(std::string_view name) {
  std::int64_t sum = 0;
  for (const GraphWeight& w : network_graph(name).weights)
    if (w.trains || w.name.find("conv.weight") != std::string::npos) sum += elements(w.shape);
  return sum;
}

// As torchvision's model pages print them.
TEST(Detectors, HaveTheirPublishedParameters) {
  EXPECT_EQ(parameters("retinanet_resnet50_fpn"), 34014999);
  EXPECT_EQ(parameters("fasterrcnn_resnet50_fpn"), 41755286);
  EXPECT_EQ(parameters("maskrcnn_resnet50_fpn"), 44401393);
  EXPECT_EQ(parameters("keypointrcnn_resnet50_fpn"), 59137258);
}

// facebookresearch/detr logs 41,302,368 trained parameters; table 1 of arXiv:2005.12872 gives 166
// million to Faster R-CNN R50-DC5 and 60 million to R101-FPN.
TEST(Detectors, TransformersAndDilatedTrunksToo) {
  EXPECT_EQ(network_parameters("detr-r50"), 41302368);
  EXPECT_NEAR(static_cast<double>(parameters("d2-faster-rcnn-R50-DC5")), 166e6, 0.01 * 166e6);
  EXPECT_NEAR(static_cast<double>(parameters("d2-faster-rcnn-R101-FPN")), 60e6, 0.015 * 60e6);
}

// The trunk of ResNeXt50-32x4d is its classifier's 25,028,904 less 2,049,000 of the last layer and
// 68,224 of batch norms, which are frozen here. The pyramid: 1 x 1 from 512, 1024, 2048 to 256 and
// five 3 x 3; two heads of four 3 x 3; 9 anchors of 264 classes and of 4 offsets.
TEST(Detectors, RetinaNetOfMlperfCountsByHand) {
  const std::int64_t square = 256 * 256 * 9 + 256;
  const std::int64_t pyramid = 256 * (512 + 1024 + 2048) + 3 * 256 + 5 * square;
  const std::int64_t heads = 8 * square + 256 * 9 * (9 * 264 + 36) + 9 * 264 + 36;
  EXPECT_EQ(parameters("retinanet-resnext50-800px"), 25028904 - 2049000 - 68224 + pyramid + heads);
}

// OpenMMLab's model zoo counts 239.32 GMACs for RetinaNet R50 and 207.07 for Faster R-CNN R50-FPN
// at 1280 x 800, the latter with 1000 regions: 488 more than in training, 14.3 MMACs each.
TEST(Detectors, HaveTheirPublishedWork) {
  EXPECT_NEAR(network_gmacs("d2-R50", {800, 1280}), 239.32, 0.01 * 239.32);
  EXPECT_NEAR(network_gmacs("d2-faster-rcnn-R50-FPN", {800, 1280}) + 488 * 14.3e-3, 207.07,
              0.01 * 207.07);
}

// Liu et al. 2015: 8732 boxes of a 300 x 300 image; six levels of 38, 19, 10, 5, 3 and 1.
TEST(Detectors, SsdHasItsBoxes) {
  const Graph g = network_graph("ssd300-r50");
  double boxes = 0;
  for (const GraphNode& n : g.nodes)
    if (n.name.find(".loc") != std::string::npos)
      boxes += static_cast<double>(elements(g.values[n.outputs[0]].shape)) / 4;
  EXPECT_EQ(boxes, 8732);
}

TEST(Detectors, BuildAtEveryAllowedSize) {
  for (const char* name : {"retinanet", "d2-mask-rcnn-R50-C4", "d2-Deformable Conv", "ssd300-r50",
                           "detr-r50", "d2-panoptic-R50-FPN", "d2-regnety_4gf_dds_FPN"}) {
    const auto* e = embedded_networks().entry(name);
    ASSERT_TRUE(e) << name;
    for (std::int64_t h : {64, 257, 300, 641, 800, 1024, 2048})
      for (std::int64_t w : {65, 300, 1000}) {
        ItemOptions item;
        item.size = {h, w};
        (void)build_network(*e, item);  // an error of range is an answer, an abort is not
      }
  }
}

}  // namespace
}  // namespace trigon
