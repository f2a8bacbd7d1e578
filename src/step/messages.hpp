#pragma once
#include "base/message.hpp"

namespace trigon {

enum class StepMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "step/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(StepMessage m) { return {Room::step, index_of(m)}; }

}  // namespace trigon
