#pragma once
#include "base/message.hpp"

namespace trigon {

enum class CostMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "cost/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(CostMessage m) { return {Room::cost, index_of(m)}; }

}  // namespace trigon
