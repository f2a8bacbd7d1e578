#pragma once
// Writes ONNX files field by field, as the tests need them.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trigon::onnx {

class OnnxWriter {
 public:
  static std::string varint(std::uint64_t n) {
    std::string out;
    for (; n > 127; n >>= 7) out += static_cast<char>((n & 127) | 128);
    return out + static_cast<char>(n);
  }
  static std::string number(int field, std::int64_t n) {
    return varint(static_cast<std::uint64_t>(field) << 3) + varint(static_cast<std::uint64_t>(n));
  }
  static std::string part(int field, std::string_view data) {
    return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(data.size()) +
           std::string(data);
  }

  using Sizes = std::vector<std::int64_t>;
  using Names = std::vector<std::string>;
  struct Attribute {
    std::string name;
    std::variant<std::int64_t, Sizes, std::string> value;
  };

  OnnxWriter& input(const std::string& name,
                    const std::vector<std::variant<std::int64_t, std::string>>& shape,
                    int type = 1) {
    body_ += part(11, value(name, shape, type));
    return *this;
  }
  OnnxWriter& output(const std::string& name) {
    body_ += part(12, value(name, {}, 1));
    return *this;
  }
  // A weight without its data: the reader only looks at its size.
  OnnxWriter& weight(const std::string& name, const Sizes& shape, int type = 1) {
    std::string t;
    for (std::int64_t d : shape) t += number(1, d);
    body_ += part(5, t + number(2, type) + part(8, name));
    return *this;
  }
  OnnxWriter& integers(const std::string& name, const Sizes& shape, const Sizes& values) {
    std::string t;
    for (std::int64_t d : shape) t += number(1, d);
    for (std::int64_t v : values) t += number(7, v);
    body_ += part(5, t + number(2, 7) + part(8, name));
    return *this;
  }
  OnnxWriter& node(const std::string& op, const Names& inputs, const Names& outputs,
                   const std::vector<Attribute>& attributes = {}, const std::string& domain = "") {
    std::string n;
    for (const std::string& i : inputs) n += part(1, i);
    for (const std::string& o : outputs) n += part(2, o);
    n += part(4, op) + part(7, domain);
    for (const Attribute& a : attributes) {
      std::string text = part(1, a.name);
      if (auto i = std::get_if<std::int64_t>(&a.value)) text += number(3, *i);
      if (auto s = std::get_if<std::string>(&a.value)) text += part(4, *s);
      if (auto l = std::get_if<Sizes>(&a.value))
        for (std::int64_t v : *l) text += number(8, v);
      n += part(5, text);
    }
    body_ += part(1, n);
    return *this;
  }
  std::string file(int opset = 17) const {
    return number(1, 8) + part(2, "test") + part(7, body_) +
           part(8, part(1, "") + number(2, opset)) +
           part(8, part(1, "com.microsoft") + number(2, 1));
  }

 private:
  static std::string value(const std::string& name,
                           const std::vector<std::variant<std::int64_t, std::string>>& shape,
                           int type) {
    std::string dims;
    for (const auto& d : shape) {
      auto n = std::get_if<std::int64_t>(&d);
      dims += part(1, n ? number(1, *n) : part(2, std::get<std::string>(d)));
    }
    return part(1, name) + part(2, part(1, number(1, type) + part(2, dims)));
  }
  std::string body_;
};

}  // namespace trigon::onnx
