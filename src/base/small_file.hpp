#pragma once
// Files that a person writes or edits: read whole, never waited for.

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace trigon {

constexpr std::uintmax_t kMostOfSmallFile = 64u << 20;  // bytes

// The text of a regular file (or of what a link leads to). Pipes and devices are refused, since
// reading them may never end, and so are files over the limit.
Result<std::string> read_small_file(const std::filesystem::path& path,
                                    std::uintmax_t most = kMostOfSmallFile);

}  // namespace trigon
