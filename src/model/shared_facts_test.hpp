#pragma once
// The shared facts are not part of the project: tests that hold us against them skip without.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace trigon {

inline std::filesystem::path shared_directory() {
  if (const char* at = std::getenv("TRIGON_SHARED")) return at;
  return std::filesystem::path(TRIGON_SOURCE_DIR) / ".." / "shared";
}

inline std::optional<std::string> shared_file(const std::string& name) {
  std::ifstream in(shared_directory() / name, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace trigon
