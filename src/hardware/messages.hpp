#pragma once
#include "base/message.hpp"

namespace trigon {

enum class HardwareMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "hardware/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(HardwareMessage m) { return {Room::hardware, index_of(m)}; }

}  // namespace trigon
