#pragma once
// The parts of `inspect` that describe a graph of operators.

#include <string>
#include <utility>
#include <vector>

#include "model/inspect.hpp"
#include "present/json.hpp"
#include "present/page.hpp"

namespace trigon {

std::string sizes_text(const std::vector<std::int64_t>& shape);  // "3 x 224 x 224"
std::string item_text(const Item& item, Language l);             // "image, 224 x 224"
void put_graph_lines(std::vector<std::pair<std::string, std::string>>& lines,
                     const GraphDescription& g, const ModelDescription& m, Language l);
void put_graph_tables(Page& page, const GraphDescription& g);
JsonNode item_json(const Item& item);
JsonNode graph_json(const GraphDescription& g);

}  // namespace trigon
