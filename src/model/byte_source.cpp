#include "model/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "model/json_value.hpp"
#include "model/messages.hpp"

namespace trigon {

ByteSource::Descriptor::~Descriptor() {
  if (fd >= 0) ::close(fd);
}

Result<ByteSource> ByteSource::open(const std::string& path) {
  ByteSource s;
  s.name_ = printable(path, 400);
  s.file_ = std::make_shared<Descriptor>();
  // Not blocking: opening a FIFO by mistake must return.
  s.file_->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat st {};
  const bool opened = s.file_->fd >= 0 && ::fstat(s.file_->fd, &st) == 0;
  if (!opened || !S_ISREG(st.st_mode)) {
    std::string why = opened ? "not a regular file" : std::generic_category().message(errno);
    return fail(ErrorCode::unreadable, message(BaseMessage::cannot_open, why), s.name_);
  }
  s.size_ = st.st_size;
  return s;
}

ByteSource ByteSource::memory(std::string_view bytes, std::string name) {
  ByteSource s;
  s.name_ = std::move(name);
  s.size_ = static_cast<std::int64_t>(bytes.size());
  s.memory_ = bytes;
  return s;
}

Result<void> ByteSource::read(std::int64_t offset, char* out, std::int64_t n,
                              const char* what) const {
  if (offset < 0 || n < 0 || offset > size_ || n > size_ - offset)
    return fail(ErrorCode::malformed,
                message(ModelMessage::file_truncated, what, n,
                        offset >= 0 && offset <= size_ ? size_ - offset : std::int64_t{0}),
                where(offset), message(ModelMessage::get_file_again));
  if (!file_) {
    std::memcpy(out, memory_.data() + offset, static_cast<std::size_t>(n));
    return {};
  }
  while (n > 0) {
    ssize_t got = ::pread(file_->fd, out, static_cast<std::size_t>(n), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      // Shrunk while we read, or a disk error.
      std::string why = got < 0 ? std::generic_category().message(errno) : "it became shorter";
      return fail(ErrorCode::unreadable, message(BaseMessage::cannot_open, why), where(offset));
    }
    out += got;
    offset += got;
    n -= got;
  }
  return {};
}

Result<std::string> ByteSource::text(std::int64_t offset, std::int64_t n, const char* what) const {
  // Checked before the memory is asked for.
  if (offset < 0 || n < 0 || offset > size_ || n > size_ - offset) {
    char none = 0;
    auto r = read(offset, &none, n, what);
    return tl::unexpected(r.error());
  }
  std::string out(static_cast<std::size_t>(n), '\0');
  if (auto r = read(offset, out.data(), n, what); !r) return tl::unexpected(r.error());
  return out;
}

Result<std::string> read_small_file(const std::string& path, std::int64_t most) {
  auto source = ByteSource::open(path);
  if (!source) return tl::unexpected(source.error());
  if (source->size() > most)
    return fail(ErrorCode::malformed,
                message(BaseMessage::file_too_large, bytes(static_cast<double>(source->size())),
                        bytes(static_cast<double>(most))),
                source->name());
  return source->text(0, source->size(), "the file");
}

}  // namespace trigon
