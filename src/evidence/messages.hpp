#pragma once
#include "base/message.hpp"

namespace trigon {

enum class EvidenceMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "evidence/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(EvidenceMessage m) { return {Room::evidence, index_of(m)}; }

}  // namespace trigon
