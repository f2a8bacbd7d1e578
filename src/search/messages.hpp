#pragma once
#include "base/message.hpp"

namespace trigon {

enum class SearchMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "search/messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(SearchMessage m) { return {Room::search, index_of(m)}; }

}  // namespace trigon
