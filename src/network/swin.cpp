// Swin Transformers: Liu et al. 2021 (arXiv:2103.14030) and V2, Liu et al. 2021
// (arXiv:2111.09883). Attention within windows, moved by half a window in every second block.

#include <algorithm>

#include "network/families.hpp"
#include "network/transformer_block.hpp"

namespace trigon {
namespace {

struct Grid {
  std::int64_t rows, columns;
};

struct Swin {
  bool second;  // V2: normalised after each branch, cosine attention, computed biases
  bool fused;
  double mlp_ratio;
};

std::int64_t up_to(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

// V2 computes the biases of all offsets from their log-distances (section 3.3).
ValueId computed_bias(NetworkBuilder& b, std::int64_t rows, std::int64_t heads) {
  auto in_bias = b.scope("cpb_mlp");
  const ValueId offsets =
      b.node("offsets", TableLookup{rows}, {}, {b.weight("offsets", {rows, 2}, false)}, {rows, 2});
  ValueId y = b.activation("1", b.linear("0", offsets, 512), Activation::relu);
  return b.activation("sigmoid", b.linear("2", y, heads, false), Activation::sigmoid);
}

ValueId window_attention(NetworkBuilder& b, ValueId x, const Swin& s, Grid grid,
                         std::int64_t window, std::int64_t heads, bool moved) {
  const std::int64_t width = b.width(x);
  const std::int64_t h = std::min(window, grid.rows), w = std::min(window, grid.columns);
  const std::int64_t rows = up_to(grid.rows, h), columns = up_to(grid.columns, w);
  moved = moved && (grid.rows > window || grid.columns > window);
  if (rows != grid.rows || columns != grid.columns) x = b.copy("pad", {x}, {rows * columns, width});
  if (moved) x = b.transpose("roll", x, {rows * columns, width});
  x = b.transpose("windows", x, {rows * columns, width});
  SelfAttention a;
  a.heads = heads;
  a.sequences = rows / h * (columns / w);
  a.fused = s.fused && !s.second;
  const std::int64_t offsets = (2 * h - 1) * (2 * w - 1);
  if (s.second) {
    a.key_bias = false;
    a.cosine = true;
    a.position_bias = computed_bias(b, offsets, heads);
  } else {
    a.bias_rows = offsets;
  }
  x = self_attention(b, x, a);
  x = b.transpose("unwindow", x, {rows * columns, width});
  if (moved) x = b.transpose("roll_back", x, {rows * columns, width});
  if (rows != grid.rows || columns != grid.columns)
    x = b.copy("unpad", {x}, {grid.rows * grid.columns, width});
  return x;
}

ValueId block(NetworkBuilder& b, ValueId x, const Swin& s, Grid grid, std::int64_t window,
              std::int64_t heads, bool moved) {
  ValueId y = s.second ? x : b.layer_norm("norm1", x);
  y = window_attention(b, y, s, grid, window, heads, moved);
  if (s.second) y = b.layer_norm("norm1", y);
  x = b.add("add1", x, y);
  FeedForward f;
  f.width = static_cast<std::int64_t>(static_cast<double>(b.width(x)) * s.mlp_ratio);
  y = feed_forward(b, s.second ? x : b.layer_norm("norm2", x), f);
  if (s.second) y = b.layer_norm("norm2", y);
  return b.add("add2", x, y);
}

// Two by two patches become one of twice the width.
ValueId merge(NetworkBuilder& b, ValueId x, const Swin& s, Grid& grid) {
  auto in_merge = b.scope("downsample");
  const std::int64_t width = b.width(x);
  grid = {(grid.rows + 1) / 2, (grid.columns + 1) / 2};
  x = b.copy("gather", {x}, {grid.rows * grid.columns, 4 * width});
  if (!s.second) x = b.layer_norm("norm", x);
  x = b.linear("reduction", x, 2 * width, false);
  return s.second ? b.layer_norm("norm", x) : x;
}

}  // namespace

Model build_swin(const NetworkSpec& spec) {
  NetworkBuilder b(spec.source());
  const Swin s{spec.flag("second"), spec.flag("fused", true), spec.number("mlp_ratio", 4)};
  const std::vector<std::int64_t> depths = spec.wholes("depths"), heads = spec.wholes("heads"),
                                  windows = spec.wholes("window");
  const std::int64_t patch = spec.whole("patch", 4);
  ValueId x = b.input({3, spec.height(), spec.image_width()});
  Grid grid{spec.height() / patch, spec.image_width() / patch};
  x = b.layer_norm("patch_embed.norm",
                   patch_tokens(b, "patch_embed.proj", x, patch, spec.whole("width")));
  for (std::size_t stage = 0; stage < std::min(depths.size(), heads.size()); ++stage) {
    auto in_stage = b.scope("layers." + std::to_string(stage));
    if (stage > 0) x = merge(b, x, s, grid);
    const std::int64_t window = windows[std::min(stage, windows.size() - 1)];
    for (std::int64_t i = 0; i < depths[stage]; ++i) {
      auto in_block = b.scope("blocks." + std::to_string(i));
      x = block(b, x, s, grid, window, heads[stage], i % 2 == 1);
    }
  }
  x = b.reduce("mean", b.layer_norm("norm", x), {1, b.width(x)});
  x = b.linear("head", x, spec.whole("classes", 1000));
  return network_model(spec, b.finish({x}), WorkUnit::image, {spec.height(), spec.image_width()});
}

}  // namespace trigon
