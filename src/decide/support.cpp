#include "decide/support.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
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
    case Format::int8_g128:
      return {"gptq"};
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

// The classes in which an engine's sheet lists what it runs ("weight_formats", "kv_formats").
std::string_view class_of(Format f) {
  if (info(f).gguf) return "gguf";
  switch (f) {
    case Format::f64:
    case Format::f32:
    case Format::tf32:
    case Format::f16:
    case Format::bf16:
      return "16bit";
    case Format::f8_e4m3:
    case Format::f8_e5m2:
    case Format::fp8_tensor:
    case Format::fp8_block:
      return "fp8";
    case Format::int8:
    case Format::int8_g128:
    case Format::i8:
      return "int8";
    case Format::int4_g32:
    case Format::int4_g64:
    case Format::int4_g128:
      return "int4";
    case Format::int3_g128:
      return "int3";
    case Format::int2_g128:
      return "int2";
    case Format::nf4:
    case Format::nf4_double:
      return "nf4";
    case Format::mxfp8:
      return "mxfp8";
    case Format::mxfp4:
      return "mxfp4";
    case Format::nvfp4:
      return "nvfp4";
    default:
      return {};
  }
}

struct Listed {
  bool stated = false, runs = true;
  double capability = 0;  // that NVIDIA's cards need at least; 0: none
};

// A list of classes, each "fp8" or "fp8@8.9": from that compute capability on. No list: not stated.
Listed listed(const EnginePolicy& engine, std::string_view key, Format f) {
  Listed out;
  const Fact* fact = engine.sheet ? engine.sheet->find(key) : nullptr;
  const auto* list = fact ? std::get_if<std::vector<std::string>>(&fact->value) : nullptr;
  const std::string_view name = class_of(f);
  if (!list || name.empty()) return out;
  out.stated = true;
  out.runs = false;
  for (std::string_view entry : *list) {
    const auto at = entry.find('@');
    if (entry.substr(0, at) != name) continue;
    out.runs = true;
    if (at != entry.npos)
      out.capability = std::strtod(std::string(entry.substr(at + 1)).c_str(), nullptr);
  }
  return out;
}

bool too_old(const Listed& l, const Accelerator& card) {
  return l.capability > 0 && card.vendor == "nvidia" && card.compute_capability &&
         *card.compute_capability < l.capability;
}

// As people write them, the usual one of each class.
struct Named {
  std::string_view name;
  Format format;
};
constexpr Named kWeights[] = {{"fp8", Format::fp8_tensor}, {"int8", Format::int8},
                              {"q8_0", Format::q8_0},      {"int4", Format::int4_g128},
                              {"q4_k", Format::q4_k},      {"q3_k", Format::q3_k},
                              {"q2_k", Format::q2_k},      {"bf16", Format::bf16}};
constexpr Named kCaches[] = {{"fp8", Format::f8_e4m3}, {"int8", Format::int8},
                             {"q8_0", Format::q8_0},   {"int4", Format::int4_g32},
                             {"q4_0", Format::q4_0},   {"bf16", Format::bf16}};

// The allowed one whose bits differ least, the earlier of equals.
template <std::size_t N, class Allowed>
std::optional<std::string_view> nearest_of(const Named (&all)[N], Format wanted, Allowed allowed) {
  std::optional<std::string_view> best;
  double least = 1e9;
  for (const Named& n : all) {
    const double d = std::abs(bits_per_element(n.format) - bits_per_element(wanted));
    if (d < least && n.format != wanted && allowed(n.format)) {
      least = d;
      best = n.name;
    }
  }
  return best;
}

}  // namespace

std::optional<Message> unsupported(const Catalogues& all, const EnginePolicy& engine,
                                   const Accelerator& card, Format stored) {
  const Format weights = dense_of(stored);
  if (!engine.made_for(card))
    return card.kind == DeviceKind::cpu
               ? message(DecideMessage::engine_not_on_processors, engine.id)
               : message(DecideMessage::engine_not_on_vendor, engine.id, card.vendor);
  // What is said of a vendor's cards is not said of its processors.
  if (card.kind == DeviceKind::cpu) {
    const Listed list = listed(engine, "weight_formats", weights);
    if (list.stated && !list.runs)
      return message(DecideMessage::engine_without_format, engine.id, info(weights).name);
    return std::nullopt;
  }
  if (!engine.runs_on(card))
    return message(DecideMessage::engine_needs_capability, engine.id, engine.nvidia_capability_min,
                   card.name, *card.compute_capability);
  SupportAnswer any = all.support.supports(card, engine.id, "any");
  if (any.support == Support::no && !of_later_release(any.version, engine.version))
    return message(DecideMessage::engine_not_on_card, engine.id, card.name, any.source);
  const Listed list = listed(engine, "weight_formats", weights);
  if (list.stated && !list.runs)
    return message(DecideMessage::engine_without_format, engine.id, info(weights).name);
  std::optional<SupportAnswer> refused;
  for (std::string_view feature : features_of(weights)) {
    SupportAnswer a = all.support.supports(card, engine.id, feature);
    if (a.support == Support::yes || a.support == Support::partial) return std::nullopt;
    if (a.support == Support::no && !refused && !of_later_release(a.version, engine.version))
      refused = a;
  }
  if (!refused) {
    if (too_old(list, card))
      return message(DecideMessage::format_needs_capability, engine.id, info(weights).name,
                     list.capability, card.name, *card.compute_capability);
    return std::nullopt;
  }
  return message(DecideMessage::engine_refuses_format, engine.id, info(weights).name, card.name,
                 refused->source);
}

std::optional<Message> unsupported_cache(const EnginePolicy& engine, const Accelerator& card,
                                         Format cache) {
  const Listed list = listed(engine, "kv_formats", cache);
  if (list.stated && !list.runs)
    return message(DecideMessage::engine_without_cache_format, engine.id, info(cache).name);
  if (too_old(list, card))
    return message(DecideMessage::cache_needs_capability, engine.id, info(cache).name,
                   list.capability, card.name, *card.compute_capability);
  return std::nullopt;
}

std::optional<Message> nearest_supported(const Catalogues& all, const EnginePolicy& engine,
                                         const Accelerator& card, Format weights) {
  // Where the engine does not run on the card at all, no format helps.
  if (unsupported(all, engine, card, Format::bf16)) return std::nullopt;
  // Files of llama.cpp are a last resort for engines that have formats of their own.
  const bool own = !unsupported(all, engine, card, Format::int4_g128);
  auto name = nearest_of(kWeights, weights, [&](Format f) {
    return !(own && info(f).gguf) && !unsupported(all, engine, card, f);
  });
  return name ? std::optional(message(DecideMessage::format_would, *name)) : std::nullopt;
}

std::optional<Message> nearest_cache(const EnginePolicy& engine, const Accelerator& card,
                                     Format cache) {
  auto name =
      nearest_of(kCaches, cache, [&](Format f) { return !unsupported_cache(engine, card, f); });
  return name ? std::optional(message(DecideMessage::cache_would, *name)) : std::nullopt;
}

}  // namespace trigon
