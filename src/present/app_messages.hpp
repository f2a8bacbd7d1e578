#pragma once
// What the programs say: the documentation of flags, help, errors of the command line. The texts
// lie here so that all of them are in one table.
#include "base/message.hpp"

namespace trigon {

enum class AppMessage : std::uint16_t {
#define TRIGON_MESSAGE(id, english) id,
#include "present/app_messages.def"
#undef TRIGON_MESSAGE
};
constexpr MessageId message_id(AppMessage m) { return {Room::app, index_of(m)}; }

}  // namespace trigon
