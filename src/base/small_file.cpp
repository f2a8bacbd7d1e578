#include "base/small_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "base/messages.hpp"
#include "base/quantity.hpp"

namespace trigon {

Result<std::string> read_small_file(const std::filesystem::path& path, std::uintmax_t most) {
  namespace fs = std::filesystem;
  auto refuse = [&](const std::string& why) {
    return fail(ErrorCode::unreadable, message(BaseMessage::cannot_open, why), path.string());
  };
  std::error_code code;
  fs::file_status status = fs::status(path, code);
  if (code) return refuse(code.message());
  if (!fs::is_regular_file(status)) return refuse("not a regular file");
  std::uintmax_t size = fs::file_size(path, code);
  if (code) return refuse(code.message());
  if (size > most)
    return fail(ErrorCode::unreadable,
                message(BaseMessage::file_too_large, bytes(static_cast<double>(size)),
                        bytes(static_cast<double>(most))),
                path.string());
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text(size, '\0');
  if (!in) return refuse(std::strerror(errno));
  in.read(text.data(), static_cast<std::streamsize>(size));
  if (in.bad()) return refuse("read error");
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace trigon
