#pragma once
// What engine, card and format may be joined, as documentation and sources of the engine say.

#include "decide/catalogues.hpp"
#include "model/format.hpp"

namespace trigon {

// Why the engine does not run on the card, or not with weights of this format; nothing when it
// does, or nobody said. Statements about later releases than the engine's do not count.
std::optional<Message> unsupported(const Catalogues& all, const EnginePolicy& engine,
                                   const Accelerator& card, Format weights);

}  // namespace trigon
