// Transforms of signals and windows over them.

#include <algorithm>
#include <cmath>

#include "onnx/op.hpp"

namespace trigon::onnx {
namespace {

// Operations of a fast transform of n points, for one of them: 5 log2(n), of a complex one.
double transform_flops(std::int64_t n) {
  return 5 * std::log2(static_cast<double>(std::max<std::int64_t>(n, 2)));
}

// x [..., n, 1 or 2] -> [..., bins, 2].
void fourier(Op& op) {
  op.need_rank(0, 2);
  TensorShape s = op.shape(0);
  std::int64_t given = op.integer("axis", op.version() >= 20 ? -2 : 1);
  if (op.has(2)) given = op.need_integer(2);
  const std::size_t a = op.axis(given, s.size());
  if (!op.ok()) return;
  if (op.has(1)) s[a] = op.need_integer(1);
  const std::int64_t n = s[a];
  const bool one_sided = op.integer("onesided", 0) != 0, inverse = op.integer("inverse", 0) != 0;
  if (one_sided && !inverse && n > 0) s[a] = n / 2 + 1;
  s.back() = one_sided && inverse ? 1 : 2;
  op.set(0, op.in(0).type, s);
  op.emit(Elementwise{"fourier", transform_flops(n) / 2, Keeps::nothing}, {0});
}

// signal [b, n, 1 or 2], step, window, length -> [b, frames, bins, 2].
void short_time_fourier(Op& op) {
  op.need_rank(0, 2, 3);
  const std::int64_t step = op.need_integer(1);
  std::int64_t length = 0;
  if (op.has(3))
    length = op.need_integer(3);
  else
    length = op.dim(2, 0);
  if (!op.ok()) return;
  const std::int64_t n = op.dim(0, 1);
  if (step < 1 || length < 1 || length > n)
    return op.fail(OnnxMessage::bad_attribute, "frame_length", length);
  const bool one_sided = op.integer("onesided", 1) != 0;
  op.set(0, op.in(0).type,
         {op.dim(0, 0), (n - length) / step + 1, one_sided ? length / 2 + 1 : length, 2});
  op.emit(Elementwise{"fourier", transform_flops(length) / 2, Keeps::nothing}, {0}, {}, {2});
}

// Windows are constants of a known size.
void window(Op& op) {
  const std::int64_t n = op.need_integer(0);
  const std::int64_t type = op.integer("output_datatype", kFloat);
  if (!op.ok()) return;
  op.set(0, type > 0 && type <= kInt2 ? static_cast<std::int32_t>(type) : std::int32_t{kFloat},
         {n});
}

void mel_weights(Op& op) {
  const std::int64_t bins = op.need_integer(0), length = op.need_integer(1);
  const std::int64_t type = op.integer("output_datatype", kFloat);
  if (!op.ok()) return;
  op.set(0, type > 0 && type <= kInt2 ? static_cast<std::int32_t>(type) : std::int32_t{kFloat},
         {length / 2 + 1, bins});
}

}  // namespace

const OperatorTable& signal_operators() {
  static const OperatorTable table = {{"DFT", fourier},           {"STFT", short_time_fourier},
                                      {"HannWindow", window},     {"HammingWindow", window},
                                      {"BlackmanWindow", window}, {"MelWeightMatrix", mel_weights}};
  return table;
}

}  // namespace trigon::onnx
