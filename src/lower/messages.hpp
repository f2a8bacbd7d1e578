#pragma once
#include "base/message.hpp"

namespace trigon {

enum class LowerMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "lower/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(LowerMessage m) { return {Room::lower, index_of(m)}; }

}  // namespace trigon
