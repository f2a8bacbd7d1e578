#pragma once
#include "base/message.hpp"

namespace trigon {

enum class EngineMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "engine/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(EngineMessage m) { return {Room::engine, index_of(m)}; }

}  // namespace trigon
