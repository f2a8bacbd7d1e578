#include "model/json_value.hpp"

#include <nlohmann/json.hpp>

#include "model/messages.hpp"

namespace trigon {
namespace {

// Builds the tree without recursion; stops at the limits.
class TreeBuilder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  TreeBuilder(std::string_view where, JsonLimits limits) : where_(where), limits_(limits) {}

  bool null() { return put(Json{}); }
  bool boolean(bool v) { return put(Json{{v}}); }
  bool number_integer(number_integer_t v) { return put(Json{{std::int64_t{v}}}); }
  bool number_unsigned(number_unsigned_t v) {
    if (v > static_cast<number_unsigned_t>(INT64_MAX)) return put(Json{{static_cast<double>(v)}});
    return put(Json{{static_cast<std::int64_t>(v)}});
  }
  bool number_float(number_float_t v, const string_t&) { return put(Json{{v}}); }
  bool string(string_t& v) { return put(Json{{std::move(v)}}); }
  bool binary(binary_t&) { return false; }
  bool start_object(std::size_t) { return open(Json{{JsonObject{}}}); }
  bool start_array(std::size_t) { return open(Json{{JsonArray{}}}); }
  bool key(string_t& k) {
    open_.back().key = std::move(k);
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception& e) {
    if (error) return false;
    // The exception's text quotes the file, so it is not repeated; the offset says where.
    (void)e;
    error = Error{ErrorCode::malformed, message(BaseMessage::bad_syntax, "JSON", "unexpected text"),
                  where_ + ":" + std::to_string(at), message(ModelMessage::get_file_again)};
    return false;
  }

  std::optional<Error> error;
  Json root;

 private:
  struct Level {
    Json value;
    std::string key;
  };

  bool put(Json v) {
    if (++count_ > limits_.values) {
      error =
          Error{ErrorCode::malformed, message(ModelMessage::json_too_many_values, limits_.values),
                where_, std::nullopt};
      return false;
    }
    if (open_.empty()) {
      root = std::move(v);
      return true;
    }
    Level& top = open_.back();
    if (auto a = std::get_if<JsonArray>(&top.value.value))
      a->push_back(std::move(v));
    else
      std::get<JsonObject>(top.value.value).push_back({std::move(top.key), std::move(v)});
    return true;
  }
  bool open(Json v) {
    if (static_cast<int>(open_.size()) >= limits_.depth) {
      error = Error{ErrorCode::malformed, message(ModelMessage::json_too_deep, limits_.depth),
                    where_, std::nullopt};
      return false;
    }
    open_.push_back({std::move(v), {}});
    return true;
  }
  bool close() {
    Json v = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(v));
  }

  std::string where_;
  JsonLimits limits_;
  std::int64_t count_ = 0;
  std::vector<Level> open_;
};

}  // namespace

const Json* Json::find(std::string_view key) const {
  const JsonObject* o = object();
  if (!o) return nullptr;
  for (auto it = o->rbegin(); it != o->rend(); ++it)
    if (it->first == key) return it->second.is_null() ? nullptr : &it->second;
  return nullptr;
}

Result<Json> parse_json(std::string_view text, std::string_view where, JsonLimits limits) {
  TreeBuilder builder(where, limits);
  bool parsed = false;
  try {
    parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  } catch (const nlohmann::json::exception&) {
    parsed = false;
  }
  if (builder.error) return tl::unexpected(std::move(*builder.error));
  if (!parsed)
    return fail(ErrorCode::malformed, message(BaseMessage::bad_syntax, "JSON", "unexpected text"),
                std::string(where), message(ModelMessage::get_file_again));
  return std::move(builder.root);
}

std::string printable(std::string_view s, std::size_t longest) {
  std::string out;
  for (std::size_t i = 0; i < s.size() && out.size() < longest; ++i) {
    auto c = static_cast<unsigned char>(s[i]);
    // Bytes of 128 and more may be halves of a character: they go as well.
    out += c < 32 || c >= 127 ? '?' : s[i];
  }
  if (s.size() > longest) out += "...";
  return out;
}

std::string pointer_to(std::string_view pointer, std::string_view key) {
  std::string out(pointer);
  out += '/';
  for (char c : printable(key)) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

}  // namespace trigon
