#pragma once
#include "base/message.hpp"

namespace trigon {

enum class MemoryMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "memory/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(MemoryMessage m) { return {Room::memory, index_of(m)}; }

}  // namespace trigon
