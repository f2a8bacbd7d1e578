// Recurrent mixers from a GGUF layer's tensors, by the names llama.cpp gives them. Shapes and
// formats are the file's own; heads and states come from its numbers.

#include <algorithm>

#include "model/gguf_block.hpp"

namespace trigon {
namespace {

struct Part {
  const char* role;
  std::string_view tensor;
  Split split;
};

// In order of execution; a file holds those of one kind.
constexpr Part kMatrices[] = {
    {"mixer.in", "ssm_in.weight", Split::column},
    {"mixer.in", "shortconv.in_proj.weight", Split::column},
    {"mixer.qkv", "attn_qkv.weight", Split::column},  // of linear attention
    {"mixer.q", "attn_q.weight", Split::column},
    {"mixer.k", "attn_k.weight", Split::column},
    {"mixer.v", "attn_v.weight", Split::column},
    {"mixer.z", "attn_gate.weight", Split::column},
    {"mixer.ba", "ssm_ba.weight", Split::column},
    {"mixer.b", "ssm_beta.weight", Split::column},
    {"mixer.a", "ssm_alpha.weight", Split::column},
    {"mixer.f_down", "ssm_f_a.weight", Split::replicated},
    {"mixer.f_up", "ssm_f_b.weight", Split::column},
    {"mixer.g_down", "ssm_g_a.weight", Split::replicated},
    {"mixer.g_up", "ssm_g_b.weight", Split::column},
    {"mixer.x", "ssm_x.weight", Split::row},
    {"mixer.dt", "ssm_dt.weight", Split::column},
    {"mixer.out", "ssm_out.weight", Split::row},
    {"mixer.out", "attn_output.weight", Split::row},  // of delta attention
    {"mixer.out", "shortconv.out_proj.weight", Split::row},
};

constexpr std::string_view kVectors[] = {"ssm_conv1d.weight",
                                         "ssm_conv1d.bias",
                                         "ssm_conv1d_q.weight",
                                         "ssm_conv1d_k.weight",
                                         "ssm_conv1d_v.weight",
                                         "ssm_dt.bias",
                                         "ssm_a",
                                         "ssm_d",
                                         "ssm_norm.weight",
                                         "ssm_dt_norm.weight",
                                         "ssm_b_norm.weight",
                                         "ssm_c_norm.weight",
                                         "shortconv.conv.weight"};

std::int64_t elements(const GgufShape& s) {
  if (!s) return 0;
  double n = 1;
  for (std::int64_t d : s.tensor->shape) n *= static_cast<double>(d);
  return n > 0 && n < 1e15 ? static_cast<std::int64_t>(n) : 0;
}

bool attention_matrix(std::string_view tensor) { return tensor.rfind("attn_", 0) == 0; }

}  // namespace

std::optional<RecurrentMixer> read_gguf_mixer(const GgufBlock& b, std::int64_t hidden) {
  const bool convolution = b.has("shortconv.in_proj.weight");
  const bool delta = b.has("ssm_ba.weight") || b.has("ssm_alpha.weight");
  const bool channel_delta = b.has("ssm_f_a.weight");
  const bool state_space = b.has("ssm_in.weight");
  if (!convolution && !delta && !channel_delta && !state_space) return std::nullopt;
  RecurrentMixer m;
  m.state_format = m.conv_format = Format::f32;  // llama.cpp keeps both in 32 bit
  m.vector_format = Format::f32;
  for (const Part& p : kMatrices) {
    // Beside a state-space mixer these belong to an attention of its own.
    if (attention_matrix(p.tensor) && !delta && !channel_delta) continue;
    const GgufShape s = b.at(p.tensor);
    if (!s) continue;
    const std::string bias = std::string(p.tensor.substr(0, p.tensor.rfind('.'))) + ".bias";
    const bool step = p.tensor == "ssm_dt.weight";  // its bias is counted with the vectors
    m.projections.push_back(
        {p.role, Linear{s.in(), s.out(), 1, known(s.format()), p.split, !step && b.has(bias)}});
  }
  for (std::string_view v : kVectors) m.vectors += elements(b.at(v));
  m.conv_kernel = b.number("ssm.conv_kernel").value_or(b.number("shortconv.l_cache").value_or(0));
  const GgufShape conv = b.at("ssm_conv1d.weight");
  m.conv_channels = conv.out();
  const std::int64_t inner = b.number("ssm.inner_size").value_or(0);
  const std::int64_t rank = b.number("ssm.time_step_rank").value_or(0);
  m.state = b.number("ssm.state_size").value_or(0);
  m.groups = std::max<std::int64_t>(b.number("ssm.group_count").value_or(1), 1);
  if (convolution) {
    m.kind = MixerKind::convolution;
    m.heads = m.conv_channels = hidden;
    m.head_dim = 1;
    m.state = 0;
  } else if (channel_delta) {
    m.kind = MixerKind::gated_delta;
    m.head_dim = m.state = b.number("kda.head_dim").value_or(b.at("ssm_f_a.weight").out());
    m.heads = m.groups = m.head_dim > 0 ? b.at("ssm_f_b.weight").out() / m.head_dim : 0;
    m.conv_channels = 3 * m.heads * m.head_dim;
    m.chunk = 64;
  } else if (delta) {
    // Heads of values and of keys; the key's width is the state's.
    m.kind = MixerKind::gated_delta;
    m.heads = rank;
    m.head_dim = rank > 0 ? inner / rank : 0;
    m.chunk = 64;
  } else if (b.has("ssm_x.weight") && b.at("ssm_a").in() != 1 && b.at("ssm_a").out() == inner) {
    m.kind = MixerKind::selective_scan;
    m.heads = inner;
    m.head_dim = 1;
  } else {
    // One decay a head: as many heads as decays.
    m.kind = MixerKind::state_space;
    m.heads = std::max(elements(b.at("ssm_a")), std::int64_t{0});
    if (m.heads == 0) m.heads = rank;
    m.head_dim = m.heads > 0 ? inner / m.heads : 0;
    m.chunk = 256;  // of the published kernels
  }
  return m;
}

}  // namespace trigon
