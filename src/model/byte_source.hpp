#pragma once
// Bounded reading of files (and of memory, for tests and fuzzing) by offset.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trigon {

class ByteSource {
 public:
  static Result<ByteSource> open(const std::string& path);
  // The bytes must outlive the source.
  static ByteSource memory(std::string_view bytes, std::string name);

  std::int64_t size() const { return size_; }
  const std::string& name() const { return name_; }
  // Exactly `n` bytes; the error names the offset and `what` should be there.
  Result<void> read(std::int64_t offset, char* out, std::int64_t n, const char* what) const;
  Result<std::string> text(std::int64_t offset, std::int64_t n, const char* what) const;
  std::string where(std::int64_t offset) const { return name_ + ":" + std::to_string(offset); }

 private:
  struct Descriptor {
    int fd = -1;
    ~Descriptor();
  };
  std::string name_;
  std::int64_t size_ = 0;
  std::string_view memory_;
  std::shared_ptr<Descriptor> file_;
};

// A whole small file (a config, an index); refuses more than `most` bytes.
Result<std::string> read_small_file(const std::string& path, std::int64_t most = 64 << 20);

}  // namespace trigon
