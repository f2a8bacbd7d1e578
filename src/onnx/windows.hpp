#pragma once
// Windows over spatial dimensions, as convolutions and pools state them.

#include "onnx/op.hpp"

namespace trigon::onnx {

struct Windows {
  std::vector<std::int64_t> kernel, strides, dilations, before, after;  // one a dimension
  std::string auto_pad;
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (std::int64_t k : kernel) n *= k;
    return n;
  }
};
// From the attributes; `kernel` where they do not give it.
Windows windows_of(Op& op, std::size_t dimensions, const TensorShape& kernel);
// Positions of the window over `in`.
TensorShape positions(Op& op, const Windows& w, const TensorShape& in, bool ceil = false);
TensorShape spatial_of(const TensorShape& whole, std::size_t from = 2);

}  // namespace trigon::onnx
