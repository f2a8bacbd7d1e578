#pragma once
// What the flags say about one item of work.

#include "model/item_options.hpp"
#include "settings.hpp"

namespace trigon {

Result<ItemOptions> read_item(const Settings& settings);

}  // namespace trigon
