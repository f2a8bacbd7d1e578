#pragma once
#include "base/message.hpp"

namespace trigon {

enum class NetworkMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "network/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(NetworkMessage m) { return {Room::network, index_of(m)}; }

}  // namespace trigon
