#include "model/recurrent_mixers.hpp"

namespace trigon {
namespace {

MixerLinear column(const char* role, std::int64_t in, std::int64_t out, bool bias = false) {
  return {role, Linear{in, out, 1, Format::bf16, Split::column, bias}};
}
MixerLinear row(const char* role, std::int64_t in, std::int64_t out, bool bias = false) {
  return {role, Linear{in, out, 1, Format::bf16, Split::row, bias}};
}
MixerLinear whole(const char* role, std::int64_t in, std::int64_t out, bool bias = false) {
  return {role, Linear{in, out, 1, Format::bf16, Split::replicated, bias}};
}

// Tokens that the kernels of flash-linear-attention take at once.
constexpr std::int64_t kDeltaChunk = 64;

}  // namespace

RecurrentMixer mamba(std::int64_t h, const MambaShape& s) {
  RecurrentMixer m;
  m.kind = MixerKind::selective_scan;
  m.heads = s.inner;
  m.head_dim = 1;
  m.state = s.state;
  m.conv_channels = s.inner;
  m.conv_kernel = s.kernel;
  m.projections = {column("mixer.in", h, 2 * s.inner, s.bias),
                   row("mixer.x", s.inner, s.step_rank + 2 * s.state),
                   column("mixer.dt", s.step_rank, s.inner, true),
                   row("mixer.out", s.inner, h, s.bias)};
  // Convolution, A for each channel and state, D.
  m.vectors = s.inner * (s.kernel + (s.conv_bias ? 1 : 0)) + s.inner * (s.state + 1);
  if (s.norms) m.vectors += s.step_rank + 2 * s.state;
  return m;
}

RecurrentMixer mamba2(std::int64_t h, const Mamba2Shape& s) {
  RecurrentMixer m;
  const std::int64_t inner = s.heads * s.head_dim, shared = 2 * s.groups * s.state;
  m.kind = MixerKind::state_space;
  m.heads = s.heads;
  m.head_dim = s.head_dim;
  m.state = s.state;
  m.groups = s.groups;
  m.conv_channels = inner + shared;
  m.conv_kernel = s.kernel;
  m.chunk = s.chunk;
  m.projections = {column("mixer.in", h, 2 * inner + shared + s.heads, s.bias),
                   row("mixer.out", inner, h, s.bias)};
  // Convolution; A, D and the step's bias for each head; the gated norm.
  m.vectors =
      m.conv_channels * (s.kernel + (s.conv_bias ? 1 : 0)) + 3 * s.heads + (s.norm ? inner : 0);
  return m;
}

RecurrentMixer plamo_mamba(std::int64_t h, const Mamba2Shape& s) {
  RecurrentMixer m;
  const std::int64_t inner = s.heads * s.head_dim;
  // The step's rank is h / 16, at least 64 (PLaMo-2's modelling code).
  const std::int64_t rank = h / 16 > 64 ? h / 16 : 64;
  m.kind = MixerKind::state_space;
  m.heads = s.heads;
  m.head_dim = s.head_dim;
  m.state = s.state;
  m.conv_channels = inner;
  m.conv_kernel = s.kernel;
  m.chunk = s.chunk;
  m.projections = {column("mixer.in", h, 2 * inner), row("mixer.x", inner, rank + 2 * s.state),
                   column("mixer.dt", rank, s.heads), row("mixer.out", inner, h)};
  m.vectors = inner * s.kernel + 3 * s.heads + rank + 2 * s.state;
  return m;
}

RecurrentMixer gated_delta(std::int64_t h, const DeltaShape& s) {
  RecurrentMixer m;
  const std::int64_t keys = s.key_heads * s.key_dim, values = s.value_heads * s.value_dim;
  m.kind = MixerKind::gated_delta;
  m.heads = s.value_heads;
  m.head_dim = s.value_dim;
  m.state = s.key_dim;
  m.groups = s.key_heads;
  m.conv_channels = 2 * keys + values;
  m.conv_kernel = s.kernel;
  m.chunk = kDeltaChunk;
  m.projections = {column("mixer.qkvz", h, 2 * keys + 2 * values),
                   column("mixer.ba", h, 2 * s.value_heads), row("mixer.out", values, h)};
  // Convolution, A and the step's bias for each head, one norm for all heads.
  m.vectors = m.conv_channels * s.kernel + 2 * s.value_heads + s.value_dim;
  return m;
}

RecurrentMixer kimi_delta(std::int64_t h, std::int64_t heads, std::int64_t head_dim,
                          std::int64_t kernel) {
  RecurrentMixer m;
  const std::int64_t inner = heads * head_dim;
  m.kind = MixerKind::gated_delta;
  m.heads = m.groups = heads;
  m.head_dim = m.state = head_dim;
  m.conv_channels = 3 * inner;
  m.conv_kernel = kernel;
  m.chunk = kDeltaChunk;
  m.projections = {column("mixer.qkv", h, 3 * inner),
                   whole("mixer.f_down", h, head_dim),
                   column("mixer.f_up", head_dim, inner),
                   column("mixer.b", h, heads),
                   whole("mixer.g_down", h, head_dim),
                   column("mixer.g_up", head_dim, inner),
                   row("mixer.out", inner, h)};
  // Convolutions, A for each head, the decay's bias for each channel, one norm for all heads.
  m.vectors = m.conv_channels * kernel + heads + inner + head_dim;
  return m;
}

RecurrentMixer lightning(std::int64_t h, std::int64_t heads, std::int64_t head_dim,
                         std::int64_t chunk) {
  RecurrentMixer m;
  const std::int64_t inner = heads * head_dim;
  m.kind = MixerKind::linear_attention;
  m.heads = m.groups = heads;
  m.head_dim = m.state = head_dim;
  m.chunk = chunk;
  m.projections = {column("mixer.qkv", h, 3 * inner), column("mixer.gate", h, inner),
                   row("mixer.out", inner, h)};
  m.vectors = inner;
  return m;
}

RecurrentMixer rg_lru(std::int64_t h, std::int64_t width, std::int64_t heads, std::int64_t kernel) {
  RecurrentMixer m;
  m.kind = MixerKind::gated_linear;
  m.heads = heads;
  m.head_dim = heads > 0 ? width / heads : 0;
  m.state = 1;
  m.groups = heads;
  m.conv_channels = width;
  m.conv_kernel = kernel;
  m.projections = {column("mixer.y", h, width, true), column("mixer.x", h, width, true),
                   column("mixer.input_gate", m.head_dim, width, true),
                   column("mixer.recurrent_gate", m.head_dim, width, true),
                   row("mixer.out", width, h, true)};
  m.vectors = width * (kernel + 1) + width;
  return m;
}

RecurrentMixer short_convolution(std::int64_t h, std::int64_t kernel, bool bias) {
  RecurrentMixer m;
  m.kind = MixerKind::convolution;
  m.heads = h;
  m.head_dim = 1;
  m.conv_channels = h;
  m.conv_kernel = kernel;
  m.projections = {column("mixer.in", h, 3 * h, bias), row("mixer.out", h, h, bias)};
  m.vectors = h * (kernel + (bias ? 1 : 0));
  return m;
}

}  // namespace trigon
