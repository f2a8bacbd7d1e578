#pragma once
// The messages any room may use: bad input, names that do not resolve, files that do not open.

#include "base/message.hpp"

namespace trigon {

enum class BaseMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "base/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(BaseMessage m) { return {Room::base, index_of(m)}; }

}  // namespace trigon
