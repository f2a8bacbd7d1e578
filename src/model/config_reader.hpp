#pragma once
// Typed access to the fields of a config, with the many names the field gives each: null counts
// as absent, a wrong type is remembered as the first error.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/json_value.hpp"

namespace trigon {

using FieldNames = std::initializer_list<std::string_view>;

class ConfigReader {
 public:
  // `where` names the file, `pointer` the object within it.
  ConfigReader(const Json& object, std::string where, std::string pointer = "");

  std::optional<std::int64_t> integer(FieldNames names);
  std::optional<double> real(FieldNames names);
  std::optional<bool> flag(FieldNames names);
  std::optional<std::string> text(FieldNames names);
  // A list of integers, or one integer for each of `length`.
  std::optional<std::vector<std::int64_t>> integers(FieldNames names, std::int64_t length);
  std::optional<std::vector<std::string>> texts(FieldNames names);
  const Json* object(FieldNames names);
  const Json* any(FieldNames names) const;
  bool has(FieldNames names) const { return any(names) != nullptr; }
  // As `integer`, and notes the first name as missing when there is none.
  std::int64_t required(FieldNames names);
  void missing(std::string_view name);
  // A nested object with the same error state; absent fields read as absent.
  ConfigReader nested(FieldNames names);

  // The first wrong type, else all missing fields at once.
  std::optional<Error> error(std::string_view who) const;
  void merge(const ConfigReader& nested);
  std::string where(std::string_view name) const;
  const Json& json() const { return *object_; }

 private:
  const Json* find(FieldNames names, std::string_view& found) const;
  void wrong(std::string_view name, const char* expected);

  const Json* object_;
  std::string where_, pointer_;
  std::optional<Error> error_;
  std::vector<std::string> missing_;
};

}  // namespace trigon
