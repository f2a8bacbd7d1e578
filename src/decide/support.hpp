#pragma once
// What engine, card and format may be joined, as documentation and sources of the engine say.

#include "decide/catalogues.hpp"
#include "model/format.hpp"

namespace trigon {

// Why the engine does not run on the card, or not with weights of this format; nothing when it
// does, or nobody said. Statements about later releases than the engine's do not count.
std::optional<Message> unsupported(const Catalogues& all, const EnginePolicy& engine,
                                   const Accelerator& card, Format weights);
// Why the engine keeps no cache in this format on the card.
std::optional<Message> unsupported_cache(const EnginePolicy& engine, const Accelerator& card,
                                         Format cache);

// What comes nearest: the format closest in bits that the engine runs, or keeps, on the card.
std::optional<Message> nearest_supported(const Catalogues& all, const EnginePolicy& engine,
                                         const Accelerator& card, Format weights);
std::optional<Message> nearest_cache(const EnginePolicy& engine, const Accelerator& card,
                                     Format cache);

}  // namespace trigon
