#pragma once
// What Trigon has to say, as an id and typed arguments. Sentences live in `present`.
//
// Each room lists its messages in `src/ROOM/messages.def` as TRIGON_MESSAGE(id, english) and
// declares them in `src/ROOM/messages.hpp`:
//
//   enum class HardwareMessage : std::uint16_t {
//   #define TRIGON_MESSAGE(id, english) id,
//   #include "hardware/messages.def"
//   #undef TRIGON_MESSAGE
//   };
//   constexpr MessageId message_id(HardwareMessage m) { return {Room::hardware, index_of(m)}; }
//
// {0}, {1} ... in the English text are the typed arguments in order. Only `present` reads the
// texts; the JSON name of a message is `room.id`.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/quantity.hpp"

namespace trigon {

enum class Room : std::uint8_t {
  base,
  hardware,
  model,
  network,
  onnx,
  library,
  engine,
  job,
  plan,
  memory,
  lower,
  cost,
  step,
  serving,
  market,
  search,
  decide,
  evidence,
  present,
  machine,
  app
};

struct MessageId {
  Room room = Room::base;
  std::uint16_t index = 0;
  friend bool operator==(MessageId, MessageId) = default;
  friend auto operator<=>(MessageId, MessageId) = default;
};

template <class E>
constexpr std::uint16_t index_of(E e) {
  return static_cast<std::uint16_t>(e);
}

// An argument keeps its type so that `present` chooses the unit and the digits.
using MessageArg =
    std::variant<std::string, std::int64_t, double, Bytes, Seconds, Dollars, Flops, BytesPerSecond,
                 FlopsPerSecond, Watts, Tokens, TokensPerSecond, DollarsPerSecond>;

struct Message {
  MessageId id;
  std::vector<MessageArg> args;
};

namespace detail {
inline MessageArg to_arg(std::string s) { return s; }
inline MessageArg to_arg(std::string_view s) { return std::string(s); }
inline MessageArg to_arg(const char* s) { return std::string(s); }
inline MessageArg to_arg(std::int64_t v) { return v; }
inline MessageArg to_arg(int v) { return static_cast<std::int64_t>(v); }
inline MessageArg to_arg(std::size_t v) { return static_cast<std::int64_t>(v); }
inline MessageArg to_arg(double v) { return v; }
template <class D>
MessageArg to_arg(Quantity<D> q) {
  return q;
}
}  // namespace detail

// message(HardwareMessage::unknown_accelerator, name) and so on.
template <class E, class... A>
Message message(E id, A&&... args) {
  Message m{message_id(id), {}};
  m.args.reserve(sizeof...(args));
  (m.args.push_back(detail::to_arg(std::forward<A>(args))), ...);
  return m;
}

}  // namespace trigon
