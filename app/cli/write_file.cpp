#include "write_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "present/app_messages.hpp"

namespace trigon {

Result<void> write_file(const std::string& path, const std::string& text,
                        const std::string& where) {
  std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file && std::rename(part.c_str(), path.c_str()) == 0) return {};
  int error = errno;
  std::remove(part.c_str());
  return fail(ErrorCode::unreadable, message(AppMessage::cannot_write, path, std::strerror(error)),
              where);
}

}  // namespace trigon
