#pragma once
// How names of hardware are compared: exactly, in a canonical form. Never by part.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trigon {

// Lower case without blanks, tabs, '-' and '_': "RTX 4090", "rtx-4090" and "RTX_4090" are one.
std::string normalised_name(std::string_view name);

// Levenshtein distance, in bytes.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate closest to `name` (the first of several), unless more than a third of it differs.
std::optional<std::string> nearest_name(std::string_view name,
                                        const std::vector<std::string_view>& candidates);

}  // namespace trigon
