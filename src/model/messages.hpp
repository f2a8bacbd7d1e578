#pragma once
#include "base/message.hpp"

namespace trigon {

enum class ModelMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "model/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(ModelMessage m) { return {Room::model, index_of(m)}; }

}  // namespace trigon
