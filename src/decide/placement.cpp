#include "decide/placement.hpp"

#include "decide/messages.hpp"

namespace trigon {
namespace {

using M = DecideMessage;

Error refusal(ErrorCode code, Message what, const char* flag,
              std::optional<Message> hint = std::nullopt) {
  return {code, std::move(what), flag, std::move(hint)};
}

}  // namespace

std::optional<Error> refused_placement(const EnginePolicy& engine, const PlanRequest& asked,
                                       int cards) {
  const Message other = message(M::try_flags, "--engine llama.cpp");
  if (!engine.host_layers && (asked.gpu_layers || asked.experts_on_host))
    return refusal(ErrorCode::unsupported, message(M::engine_keeps_layers, engine.id),
                   asked.gpu_layers ? "--gpu-layers" : "--experts-on-host", other);
  const CardSplit split = asked.card_split.value_or(CardSplit::layer);
  // Buffers of every card have full size (ggml-org/llama.cpp issue 23937), which matrices and
  // caches lie where follows from the graph of each architecture (llama_meta_device_get_split_
  // state; ik_llama.cpp's llama-load-tensors.cpp).
  if (split == CardSplit::tensor || split == CardSplit::graph) {
    const bool own = engine.card_shares && engine.latent_expanded == (split == CardSplit::graph);
    const auto name = std::string(card_split_name(split));
    return refusal(ErrorCode::unsupported,
                   own ? message(M::split_mode_not_modelled, engine.id, name)
                       : message(M::engine_without_split_mode, engine.id, name),
                   "--split-mode", message(M::try_flags, "--split-mode layer"));
  }
  if (split == CardSplit::row && engine.row_split == RowSplit::never)
    return refusal(ErrorCode::unsupported, message(M::engine_without_row_split, engine.id),
                   "--split-mode", other);
  if (!engine.card_shares && (asked.card_split || asked.card_shares || asked.main_card))
    return refusal(ErrorCode::unsupported, message(M::engine_without_card_shares, engine.id),
                   asked.card_split    ? "--split-mode"
                   : asked.card_shares ? "--tensor-split"
                                       : "--main-gpu",
                   other);
  if (asked.main_card) {
    if (*asked.main_card >= cards)
      return refusal(ErrorCode::bad_argument, message(M::card_beyond, *asked.main_card, cards),
                     "--main-gpu");
    if (split == CardSplit::layer)
      return refusal(ErrorCode::bad_argument, message(M::main_card_of_layers), "--main-gpu",
                     message(M::try_flags, "--split-mode none"));
  }
  if (asked.card_shares) {
    if (split == CardSplit::none)
      return refusal(ErrorCode::bad_argument, message(M::shares_of_one_card), "--tensor-split");
    const int replicas = asked.data.value_or(1);
    const int each = replicas > 0 && cards % replicas == 0 ? cards / replicas : cards;
    if (asked.card_shares->size() != static_cast<std::size_t>(asked.pipeline.value_or(each)))
      return refusal(
          ErrorCode::bad_argument,
          message(M::shares_of_other_count, static_cast<std::int64_t>(asked.card_shares->size()),
                  asked.pipeline.value_or(each)),
          "--tensor-split");
  }
  return std::nullopt;
}

}  // namespace trigon
