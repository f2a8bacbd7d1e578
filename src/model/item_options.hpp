#pragma once
// What a user may say about one item of work: how large an image, how long a recording. Readers
// and network families build their graphs for it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trigon {

struct ItemOptions {
  std::vector<std::int64_t> size;       // pixels: one side for a square, or height and width
  std::optional<std::int64_t> tokens;   // of a text that a network reads
  std::optional<double> audio_seconds;  // of one recording
  std::optional<std::int64_t> steps;    // denoising steps
  std::optional<bool> guidance;         // classifier-free: two evaluations a step
  // Shapes of named inputs of a file whose dimensions are open, batch included.
  std::map<std::string, std::vector<std::int64_t>> shapes;
  bool empty() const {
    return size.empty() && !tokens && !audio_seconds && !steps && !guidance && shapes.empty();
  }
};

}  // namespace trigon
