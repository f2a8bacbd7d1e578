#pragma once
// The unit of work of models that do not write tokens one by one.

#include <cstdint>
#include <string>
#include <vector>

namespace trigon {

// What a model that does not write tokens one by one does in one go.
enum class WorkUnit : std::uint8_t { sequence, image, volume, sample, utterance };
struct Item {
  WorkUnit unit = WorkUnit::image;
  std::vector<std::int64_t> size;  // 224 x 224 pixels, 128 tokens: what one item measures
  std::int64_t steps = 1;          // denoising steps in inference
  double audio_seconds = 0;        // of one item, where it is sound
  // What publications count instead of items, and how many an item has: "frames", 860.
  std::string counted{};
  double counted_per_item = 1;
};

}  // namespace trigon
