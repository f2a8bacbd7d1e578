#pragma once
#include "base/message.hpp"

namespace trigon {

enum class JobMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "job/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(JobMessage m) { return {Room::job, index_of(m)}; }

}  // namespace trigon
