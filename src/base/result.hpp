#pragma once
// Errors are values: Result<T> is tl::expected<T, Error>. Whether a call worked is kept apart
// from what the answer is: "does not fit" is an answer, not an error.

#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "base/messages.hpp"

namespace trigon {

enum class ErrorCode {
  bad_argument,    // a flag or value the user gave
  unknown_name,    // no such hardware, model, engine, key
  ambiguous_name,  // several candidates; `hint` lists them
  missing_fact,    // the catalogue lacks a fact that the answer needs
  unreadable,      // the operating system refused
  malformed,       // a file breaks its format
  unsupported,     // understood, but not something Trigon can express yet
};

// `where` is a file:offset, file#json-pointer, or flag. `hint` names the remedy.
struct Error {
  ErrorCode code = ErrorCode::bad_argument;
  Message what;
  std::string where;
  std::optional<Message> hint;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, Message what, std::string where = {},
                                  std::optional<Message> hint = std::nullopt) {
  return tl::unexpected<Error>(Error{code, std::move(what), std::move(where), std::move(hint)});
}

}  // namespace trigon
