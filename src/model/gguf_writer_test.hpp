#pragma once
// Makes GGUF bytes for tests: metadata and tensor infos, in either byte order and any version.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trigon {

class GgufWriter {
 public:
  explicit GgufWriter(std::uint32_t version = 3, bool big = false) : version_(version), big_(big) {}

  void text(std::string_view key, std::string_view value) {
    begin(key, 8);
    put_text(metadata_, value);
  }
  void u32(std::string_view key, std::uint32_t v) {
    begin(key, 4);
    put(metadata_, v, 4);
  }
  void boolean(std::string_view key, bool v) {
    begin(key, 7);
    put(metadata_, v, 1);
  }
  void raw(std::string_view key, std::uint32_t type, std::uint64_t v, int width) {
    begin(key, type);
    put(metadata_, v, width);
  }
  void i32_list(std::string_view key, const std::vector<std::int64_t>& list) {
    begin(key, 9);
    put(metadata_, 5, 4);
    put(metadata_, list.size(), version_ == 1 ? 4 : 8);
    for (std::int64_t v : list) put(metadata_, static_cast<std::uint64_t>(v), 4);
  }
  void text_list(std::string_view key, const std::vector<std::string>& list) {
    begin(key, 9);
    put(metadata_, 8, 4);
    put(metadata_, list.size(), version_ == 1 ? 4 : 8);
    for (const std::string& v : list) put_text(metadata_, v);
  }
  // Dimensions as ggml writes them: the contiguous one first.
  void tensor(std::string_view name, const std::vector<std::int64_t>& dimensions,
              std::uint32_t type, std::uint64_t offset = 0) {
    put_text(infos_, name);
    put(infos_, dimensions.size(), 4);
    for (std::int64_t d : dimensions)
      put(infos_, static_cast<std::uint64_t>(d), version_ == 1 ? 4 : 8);
    put(infos_, type, 4);
    put(infos_, offset, 8);
    ++tensors_;
  }
  std::string bytes() const {
    std::string out = "GGUF";
    put(out, version_, 4);
    put(out, tensors_, version_ == 1 ? 4 : 8);
    put(out, entries_, version_ == 1 ? 4 : 8);
    return out + metadata_ + infos_;
  }

 private:
  void begin(std::string_view key, std::uint32_t type) {
    put_text(metadata_, key);
    put(metadata_, type, 4);
    ++entries_;
  }
  void put_text(std::string& out, std::string_view s) const {
    put(out, s.size(), version_ == 1 ? 4 : 8);
    out += s;
  }
  void put(std::string& out, std::uint64_t v, int width) const {
    for (int i = 0; i < width; ++i)
      out += static_cast<char>(v >> (8 * (big_ ? width - 1 - i : i)) & 0xff);
  }

  std::uint32_t version_;
  bool big_;
  std::uint64_t entries_ = 0, tensors_ = 0;
  std::string metadata_, infos_;
};

}  // namespace trigon
