#include "model/config_reader.hpp"

#include <cmath>

#include "model/messages.hpp"

namespace trigon {
namespace {

const Json kEmptyObject{{JsonObject{}}};
// No dimension of a model comes near; products of two fit 64 bits.
constexpr std::int64_t kLargest = std::int64_t{1} << 31;

std::optional<std::int64_t> integer_of(const Json& v) {
  if (auto i = v.integer(); i && *i >= -kLargest && *i <= kLargest) return *i;
  if (auto d = v.real())
    if (std::floor(*d) == *d && std::fabs(*d) <= static_cast<double>(kLargest))
      return static_cast<std::int64_t>(*d);
  return std::nullopt;
}

}  // namespace

ConfigReader::ConfigReader(const Json& object, std::string where, std::string pointer)
    : object_(&object), where_(std::move(where)), pointer_(std::move(pointer)) {}

const Json* ConfigReader::find(FieldNames names, std::string_view& found) const {
  for (std::string_view n : names)
    if (const Json* v = object_->find(n)) {
      found = n;
      return v;
    }
  return nullptr;
}

const Json* ConfigReader::any(FieldNames names) const {
  std::string_view ignored;
  return find(names, ignored);
}

std::string ConfigReader::where(std::string_view name) const {
  return where_ + "#" + pointer_to(pointer_, name);
}

void ConfigReader::wrong(std::string_view name, const char* expected) {
  if (!error_)
    error_ = Error{ErrorCode::malformed, message(BaseMessage::wrong_type, name, expected),
                   where(name), std::nullopt};
}

std::optional<std::int64_t> ConfigReader::integer(FieldNames names) {
  std::string_view name;
  const Json* v = find(names, name);
  if (!v) return std::nullopt;
  auto i = integer_of(*v);
  if (!i) wrong(name, "a whole number up to 2^31");
  return i;
}

std::optional<double> ConfigReader::real(FieldNames names) {
  std::string_view name;
  const Json* v = find(names, name);
  if (!v) return std::nullopt;
  if (auto i = v->integer()) return static_cast<double>(*i);
  if (auto d = v->real()) return *d;
  wrong(name, "a number");
  return std::nullopt;
}

std::optional<bool> ConfigReader::flag(FieldNames names) {
  std::string_view name;
  const Json* v = find(names, name);
  if (!v) return std::nullopt;
  if (auto b = v->flag()) return *b;
  if (auto i = v->integer(); i && (*i == 0 || *i == 1)) return *i == 1;
  wrong(name, "true or false");
  return std::nullopt;
}

std::optional<std::string> ConfigReader::text(FieldNames names) {
  std::string_view name;
  const Json* v = find(names, name);
  if (!v) return std::nullopt;
  if (auto s = v->text()) return *s;
  wrong(name, "a text");
  return std::nullopt;
}

std::optional<std::vector<std::int64_t>> ConfigReader::integers(FieldNames names,
                                                                std::int64_t length) {
  std::string_view name;
  const Json* v = find(names, name);
  if (!v || length < 0) return std::nullopt;
  const JsonArray* a = v->array();
  if (!a) {
    auto i = integer_of(*v);
    if (!i) {
      wrong(name, "a whole number up to 2^31 or a list of them");
      return std::nullopt;
    }
    return std::vector<std::int64_t>(static_cast<std::size_t>(length), *i);
  }
  if (static_cast<std::int64_t>(a->size()) != length) {
    if (!error_)
      error_ =
          Error{ErrorCode::malformed, message(ModelMessage::field_length, name, a->size(), length),
                where(name), std::nullopt};
    return std::nullopt;
  }
  std::vector<std::int64_t> out;
  for (const Json& e : *a) {
    auto i = e.is_null() ? std::optional<std::int64_t>(0) : integer_of(e);
    if (!i) {
      wrong(name, "a whole number up to 2^31 or a list of them");
      return std::nullopt;
    }
    out.push_back(*i);
  }
  return out;
}

std::optional<std::vector<std::string>> ConfigReader::texts(FieldNames names) {
  std::string_view name;
  const Json* v = find(names, name);
  if (!v) return std::nullopt;
  std::vector<std::string> out;
  if (auto s = v->text()) {
    out.push_back(*s);
    return out;
  }
  const JsonArray* a = v->array();
  if (!a) {
    wrong(name, "a list of texts");
    return std::nullopt;
  }
  for (const Json& e : *a) {
    auto s = e.text();
    if (!s) {
      wrong(name, "a list of texts");
      return std::nullopt;
    }
    out.push_back(*s);
  }
  return out;
}

const Json* ConfigReader::object(FieldNames names) {
  std::string_view name;
  const Json* v = find(names, name);
  if (!v) return nullptr;
  if (!v->object()) {
    wrong(name, "an object");
    return nullptr;
  }
  return v;
}

std::int64_t ConfigReader::required(FieldNames names) {
  if (!has(names)) {
    missing(*names.begin());
    return 0;
  }
  return integer(names).value_or(0);
}

void ConfigReader::missing(std::string_view name) {
  for (const std::string& m : missing_)
    if (m == name) return;
  missing_.emplace_back(name);
}

ConfigReader ConfigReader::nested(FieldNames names) {
  std::string_view name;
  const Json* v = find(names, name);
  if (v && v->object()) return ConfigReader(*v, where_, pointer_to(pointer_, name));
  if (v) wrong(name, "an object");
  return ConfigReader(kEmptyObject, where_, pointer_to(pointer_, *names.begin()));
}

void ConfigReader::merge(const ConfigReader& nested) {
  if (!error_) error_ = nested.error_;
  for (const std::string& m : nested.missing_) missing(m);
}

std::optional<Error> ConfigReader::error(std::string_view who) const {
  if (error_) return error_;
  if (missing_.empty()) return std::nullopt;
  std::string list;
  for (const std::string& m : missing_) list += (list.empty() ? "" : ", ") + m;
  return Error{ErrorCode::malformed, message(ModelMessage::missing_fields, printable(who), list),
               where_ + "#" + (pointer_.empty() ? "/" : pointer_), std::nullopt};
}

}  // namespace trigon
