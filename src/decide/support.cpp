#include "decide/support.hpp"

#include <algorithm>
#include <vector>

#include "decide/messages.hpp"

namespace trigon {
namespace {

// The names under which data/software/ speaks of kernels that run these weights: one is enough.
std::vector<std::string_view> features_of(Format f) {
  if (info(f).gguf) return {"gguf"};
  switch (f) {
    case Format::f8_e4m3:
    case Format::f8_e5m2:
    case Format::fp8_tensor:
    case Format::fp8_block:
      return {"fp8_w8a8", "fp8_w8a16", "fp8", "fp8_block"};
    case Format::int8:
      return {"int8_w8a8", "gptq"};
    case Format::int4_g32:
    case Format::int4_g64:
    case Format::int4_g128:
      return {"awq", "gptq", "marlin"};
    case Format::nf4:
    case Format::nf4_double:
      return {"bitsandbytes"};
    case Format::nvfp4:
      return {"nvfp4"};
    default:
      return {};
  }
}

// "1.x" states 1 and later; "0.14/0.15" is of 0.14 on.
bool of_later_release(std::string_view stated, std::string_view engine) {
  auto end = stated.find_first_not_of("0123456789.");
  stated = stated.substr(0, end);
  while (!stated.empty() && stated.back() == '.') stated.remove_suffix(1);
  auto a = parse_version(stated), b = parse_version(engine);
  return !a.empty() && !b.empty() && b < a;
}

}  // namespace

std::optional<Message> unsupported(const Catalogues& all, const EnginePolicy& engine,
                                   const Accelerator& card, Format weights) {
  if (std::find(engine.vendors.begin(), engine.vendors.end(), card.vendor) == engine.vendors.end())
    return message(DecideMessage::engine_not_on_vendor, engine.id, card.vendor);
  if (!engine.runs_on(card))
    return message(DecideMessage::engine_needs_capability, engine.id, engine.nvidia_capability_min,
                   card.name, *card.compute_capability);
  SupportAnswer any = all.support.supports(card, engine.id, "any");
  if (any.support == Support::no && !of_later_release(any.version, engine.version))
    return message(DecideMessage::engine_not_on_card, engine.id, card.name, any.source);
  std::optional<SupportAnswer> refused;
  for (std::string_view feature : features_of(weights)) {
    SupportAnswer a = all.support.supports(card, engine.id, feature);
    if (a.support == Support::yes || a.support == Support::partial) return std::nullopt;
    if (a.support == Support::no && !refused && !of_later_release(a.version, engine.version))
      refused = a;
  }
  if (!refused) return std::nullopt;
  return message(DecideMessage::engine_refuses_format, engine.id, info(weights).name, card.name,
                 refused->source);
}

}  // namespace trigon
