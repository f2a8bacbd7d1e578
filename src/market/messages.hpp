#pragma once
#include "base/message.hpp"

namespace trigon {

enum class MarketMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "market/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(MarketMessage m) { return {Room::market, index_of(m)}; }

}  // namespace trigon
