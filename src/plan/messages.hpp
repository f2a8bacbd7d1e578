#pragma once
#include "base/message.hpp"

namespace trigon {

enum class PlanMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "plan/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(PlanMessage m) { return {Room::plan, index_of(m)}; }

}  // namespace trigon
