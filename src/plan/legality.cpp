#include "plan/legality.hpp"

#include <algorithm>
#include <variant>

#include "plan/messages.hpp"

namespace trigon {
namespace {

// The largest divisor of `n` that is at most `d`.
std::int64_t nearest_divisor(std::int64_t n, std::int64_t d) {
  for (std::int64_t i = std::min(n, d); i > 1; --i)
    if (n % i == 0) return i;
  return 1;
}

std::optional<Message> indivisible(PlanMessage what, std::int64_t n, std::int64_t degree) {
  if (n <= 0 || n % degree == 0) return std::nullopt;
  return message(what, n, degree, nearest_divisor(n, degree));
}

// A divided input dimension must keep whole quantisation groups on every rank: those of the
// checkpoint, or of the format that the plan stores 16- and 32-bit weights in (vLLM: "The input
// size is not aligned with the quantized weight shape", "not divisible by weight quantization
// block_k").
std::optional<Message> groups(const Linear& l, std::int64_t degree, Format planned) {
  if (degree <= 1 || l.split != Split::row) return std::nullopt;
  const bool plain = info(l.format).block_elements <= 1 && info(l.format).floating;
  const Format format = plain ? planned : l.format;
  // bitsandbytes forms its blocks after the split, over the flat weight.
  if (plain && (planned == Format::nf4 || planned == Format::nf4_double)) return std::nullopt;
  const FormatInfo& f = info(format);
  std::int64_t block = f.block_elements;
  switch (format) {
    case Format::fp8_block:
      block = 128;
      break;
    case Format::int8_g128:
    case Format::int4_g128:
    case Format::int3_g128:
    case Format::int2_g128:
      block = 128;
      break;
    case Format::int4_g64:
    case Format::nf4:
    case Format::nf4_double:
      block = 64;
      break;
    case Format::int4_g32:
      block = 32;
      break;
    default:
      break;
  }
  if (block <= 1 || l.in % degree != 0 || (l.in / degree) % block == 0) return std::nullopt;
  std::int64_t whole = l.in / block;
  return message(PlanMessage::groups_do_not_divide, whole, degree,
                 nearest_divisor(std::max<std::int64_t>(whole, 1), degree));
}

// Context ranks that exchange parts of the sequence for heads (arXiv:2309.14509;
// DeepSpeed-Ulysses).
std::optional<Message> exchanged_heads(std::int64_t heads, const Plan& p) {
  const std::int64_t t = p.tensor, c = p.context;
  if (c == 1 || p.context_exchange != ContextExchange::all_to_all || heads % (t * c) == 0)
    return std::nullopt;
  return message(PlanMessage::heads_over_context, heads, t, c);
}

std::optional<Message> check_attention(const Attention& a, const Plan& p) {
  const std::int64_t t = p.tensor;
  // Key-value heads that are fewer are repeated.
  if (auto m = exchanged_heads(a.heads, p)) return m;
  if (auto m = indivisible(PlanMessage::heads_do_not_divide, a.heads, t)) return m;
  // Fewer key-value heads than ranks are repeated, evenly.
  if (a.kv_heads > 0 && a.kv_heads % t != 0 && t % a.kv_heads != 0)
    return message(PlanMessage::kv_heads_do_not_divide, a.kv_heads, t,
                   nearest_divisor(a.kv_heads, t));
  return groups(a.o, t, p.weights);
}

std::optional<Message> check_layer(const Layer& layer, const Plan& p, bool serving) {
  const std::int64_t t = p.tensor, e = p.expert;
  for (const SubLayer& part : layer.parts) {
    if (auto a = std::get_if<Attention>(&part)) {
      if (auto m = check_attention(*a, p)) return m;
    } else if (auto c = std::get_if<CrossAttention>(&part)) {
      if (auto m = check_attention(c->attention, p)) return m;
    } else if (auto l = std::get_if<LatentAttention>(&part)) {
      if (auto m = exchanged_heads(l->heads, p)) return m;
      if (auto m = indivisible(PlanMessage::heads_do_not_divide, l->heads, t)) return m;
      if (auto m = groups(l->o, t, p.weights)) return m;
    } else if (auto z = std::get_if<CompressedAttention>(&part)) {
      if (auto m = indivisible(PlanMessage::heads_do_not_divide, z->heads, t)) return m;
      if (auto m = groups(z->o_up, t, p.weights)) return m;
    } else if (auto r = std::get_if<RecurrentMixer>(&part)) {
      if (auto m = indivisible(PlanMessage::heads_do_not_divide, r->heads, t)) return m;
      // One group is kept on every rank (vLLM mamba_mixer2.py); several divide.
      if (r->groups > 1 && r->groups < r->heads && r->groups % t != 0 && t % r->groups != 0)
        return message(PlanMessage::mixer_groups_do_not_divide, r->groups, t,
                       nearest_divisor(r->groups, t));
      for (const MixerLinear& one : r->projections)
        if (one.linear.split == Split::row)
          if (auto m = groups(one.linear, t, p.weights)) return m;
    } else if (auto f = std::get_if<Mlp>(&part)) {
      if (auto m = indivisible(PlanMessage::width_does_not_divide, f->width, t)) return m;
      if (auto m = groups(f->down, t, p.weights)) return m;
    } else if (auto x = std::get_if<MixtureOfExperts>(&part)) {
      if (auto m = indivisible(PlanMessage::experts_do_not_divide, x->experts, e)) return m;
      const std::int64_t inner = expert_tensor_ranks(p, serving);
      if (auto m = indivisible(PlanMessage::width_does_not_divide, x->width, inner)) return m;
      Linear down = x->down;
      down.split = Split::row;
      if (auto m = groups(down, inner, p.weights)) return m;
      if (x->shared) {
        if (auto m = indivisible(PlanMessage::width_does_not_divide, x->shared->width, t)) return m;
        if (auto m = groups(x->shared->down, t, p.weights)) return m;
      }
    }
  }
  return std::nullopt;
}

std::optional<Message> check_layers(const Stack& stack, const Plan& p, bool serving) {
  for (const LayerRun& r : stack.runs)
    if (auto m = check_layer(r.layer, p, serving)) return m;
  return std::nullopt;
}

// The degree that a reason names as possible is one that every layer allows, not only the one that
// refused: 40 heads divide by 10, but 8 key-value heads do not.
Message with_nearest(Message m, const Stack& stack, Plan p, bool serving) {
  if (m.id == message_id(PlanMessage::experts_do_not_divide) || m.args.size() < 3) return m;
  p.expert = 1;  // what experts ask of their own degree is another matter
  for (std::int32_t t = p.tensor - 1; t >= 1; --t) {
    p.tensor = t;
    if (check_layers(stack, p, serving)) continue;
    m.args[2] = std::int64_t{t};
    break;
  }
  return m;
}

}  // namespace

std::optional<Message> check_split(const Stack& stack, const Plan& p, bool serving) {
  for (std::int64_t v : {p.tensor, p.pipeline, p.virtual_stages, p.data, p.context, p.expert,
                         p.micro_batch, p.accumulation})
    if (v < 1) return message(PlanMessage::degree_below_one, v);
  if (p.expert > 1) {
    bool experts = false;
    for (const LayerRun& r : stack.runs)
      for (const SubLayer& part : r.layer.parts)
        experts = experts || std::holds_alternative<MixtureOfExperts>(part);
    if (!experts) return message(PlanMessage::no_experts);
  }
  if (auto m = check_layers(stack, p, serving))
    return with_nearest(std::move(*m), stack, p, serving);
  if (p.expert > 1) {
    // Training: across data and context ranks, or across the tensor ranks as well.
    std::int64_t group = serving ? p.tensor : static_cast<std::int64_t>(p.data) * p.context;
    if (!serving && group % p.expert != 0) group *= p.tensor;
    if (group % p.expert != 0)
      return message(PlanMessage::expert_group, p.expert, group, nearest_divisor(group, p.expert));
  }
  const std::int64_t layers = stack.layers();
  const std::int64_t blocks = static_cast<std::int64_t>(p.pipeline) * p.virtual_stages;
  // Interleaved, embedding and loss may each take the place of a layer (see below).
  if (blocks > layers + (p.virtual_stages > 1 ? 2 : 0))
    return message(PlanMessage::fewer_layers_than_stages, layers, blocks);
  if (p.schedule == Schedule::interleaved && p.virtual_stages < 2)
    return message(PlanMessage::interleaved_without_chunks);
  if (p.virtual_stages > 1 && p.pipeline_schedule() != Schedule::interleaved)
    return message(PlanMessage::schedule_without_chunks, schedule_name(p.schedule));
  const std::int64_t replicas = std::int64_t{1} * p.data * p.context;
  if (p.optimizer_groups > 1 && replicas % p.optimizer_groups != 0)
    return message(PlanMessage::groups_do_not_divide_ranks, p.optimizer_groups, replicas);
  if (p.virtual_stages > 1) {
    if (p.pipeline < 2) return message(PlanMessage::interleaving_needs_stages);
    // Embedding and loss may each take the place of a layer (Megatron:
    // --account-for-embedding-in-pipeline-split, --account-for-loss-in-pipeline-split).
    if (p.last_stage_layers == 0 && layers % blocks != 0 && (layers + 1) % blocks != 0 &&
        (layers + 2) % blocks != 0)
      return message(PlanMessage::layers_indivisible, layers, blocks,
                     nearest_divisor(layers, blocks));
    if (p.interleave_group == 0 && p.accumulation % p.pipeline != 0)
      return message(PlanMessage::interleaving_micro_batches, p.accumulation, p.pipeline);
  }
  if (p.offload_weights && p.zero != 3 && !serving)
    return message(PlanMessage::offload_needs_zero3, p.zero);
  if (p.zero == 2 && p.pipeline > 1 && !serving)
    return message(PlanMessage::zero_with_pipeline, p.zero);
  return std::nullopt;
}

}  // namespace trigon
