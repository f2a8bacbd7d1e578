#pragma once
#include <string>

#include "base/result.hpp"

namespace trigon {

// The whole file or nothing: a new file that takes the old one's place when it is complete.
Result<void> write_file(const std::string& path, const std::string& text, const std::string& where);

}  // namespace trigon
