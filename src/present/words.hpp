#pragma once
// The sentences behind message ids, in English and Chinese. English comes from each room's
// messages.def, Chinese from po/zh_CN.po, which is embedded and read here.

#include <string>
#include <string_view>
#include <vector>

#include "base/message.hpp"
#include "base/result.hpp"
#include "present/messages.hpp"

namespace trigon {

enum class Language : std::uint8_t { english, chinese };

// One line of the table of all messages, in the order (room, index).
struct MessageEntry {
  MessageId id;
  std::string_view room, name;  // together the JSON name "room.name"
  std::string_view english;
};
const std::vector<MessageEntry>& all_messages();

// "hardware.unknown_accelerator"; empty for an id of no room.
std::string message_name(MessageId id);
// The text with its placeholders. Falls back to English where a translation is missing.
std::string_view message_text(MessageId id, Language language);
// The sentence: arguments take the unit and digits of their type, strings lose control bytes.
std::string render(const Message& m, Language language);
// "hardware.unknown_accelerator: what (where)" is for logs; this is for people: the sentence,
// where, and the hint on a line of its own.
std::string render_error(const Error& e, Language language);

// A message without arguments: labels and headings.
template <class E>
std::string_view label(E id, Language language) {
  return message_text(message_id(id), language);
}

}  // namespace trigon
