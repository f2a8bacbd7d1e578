#include "write_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "present/app_messages.hpp"

namespace trigon {

Result<void> write_file(const std::string& path, const std::string& text,
                        const std::string& where) {
  namespace fs = std::filesystem;
  // A device, a pipe or a link is written through: a new file must not take its place.
  std::error_code code;
  const fs::file_type there = fs::symlink_status(path, code).type();
  const bool replace = there == fs::file_type::not_found || there == fs::file_type::regular;
  const std::string part = replace ? path + ".part" : path;
  errno = 0;
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file && (!replace || std::rename(part.c_str(), path.c_str()) == 0)) return {};
  int error = errno;
  if (replace) std::remove(part.c_str());
  return fail(ErrorCode::unreadable, message(AppMessage::cannot_write, path, std::strerror(error)),
              where);
}

}  // namespace trigon
