#pragma once
#include "base/message.hpp"

namespace trigon {

enum class DecideMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "decide/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(DecideMessage m) { return {Room::decide, index_of(m)}; }

}  // namespace trigon
