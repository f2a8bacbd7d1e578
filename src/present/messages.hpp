#pragma once
#include "base/message.hpp"

namespace trigon {

enum class PresentMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "present/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(PresentMessage m) { return {Room::present, index_of(m)}; }

}  // namespace trigon
