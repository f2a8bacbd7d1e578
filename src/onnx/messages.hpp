#pragma once
#include "base/message.hpp"

namespace trigon {

enum class OnnxMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "onnx/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(OnnxMessage m) { return {Room::onnx, index_of(m)}; }

}  // namespace trigon
