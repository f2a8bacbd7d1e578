#include "library/library.hpp"

#include <filesystem>

#include "hardware/names.hpp"
#include "model/open_model.hpp"
#include "onnx/onnx_model.hpp"

namespace trigon {
namespace {

namespace fs = std::filesystem;

bool ends_with(std::string_view s, std::string_view tail) {
  return s.size() >= tail.size() && s.substr(s.size() - tail.size()) == tail;
}

// The flag of the first thing said about an item; null when nothing was.
const char* first_option(const ItemOptions& item) {
  if (!item.size.empty()) return "--image";
  if (item.tokens) return "--tokens-per-item";
  if (item.audio_seconds) return "--audio";
  if (item.steps) return "--steps";
  if (item.guidance) return "--guidance";
  if (!item.shapes.empty()) return "--shape";
  return nullptr;
}

Result<Model> without_item(Result<Model> model, const ItemOptions& item) {
  const char* flag = first_option(item);
  if (!model || !flag) return model;
  return fail(ErrorCode::bad_argument,
              message(NetworkMessage::option_not_for_network, flag, model->id), flag);
}

Result<Model> open_file(const std::string& path, const ItemOptions& item) {
  if (ends_with(path, ".onnx")) return open_onnx_file(path, item);
  return without_item(open_model_file(path), item);
}

}  // namespace

Result<Model> named_model(const std::string& name, const ModelCatalog& models,
                          const NetworkCatalog& networks, const ItemOptions& item) {
  auto language = models.find(name, "MODEL");
  if (language || language.error().code != ErrorCode::unknown_name)
    return without_item(std::move(language), item);
  if (networks.entry(name)) return networks.find(name, item, "MODEL");
  std::vector<std::string_view> ids;
  for (const FactSheet* s : models.all()) ids.push_back(s->id);
  for (const NetworkCatalog::Entry& e : networks.all()) ids.push_back(e.id);
  Error error = language.error();
  error.hint.reset();
  if (auto near = nearest_name(name, ids)) error.hint = message(BaseMessage::nearest_name, *near);
  return tl::unexpected(error);
}

Result<Model> open_model(const std::string& path_or_name, const ModelCatalog& models,
                         const NetworkCatalog& networks, const ItemOptions& item) {
  std::error_code none;
  const fs::path p(path_or_name);
  if (fs::is_regular_file(p, none)) return open_file(path_or_name, item);
  const bool folder = fs::is_directory(p, none);
  if (folder && holds_model(path_or_name)) return open_file(path_or_name, item);
  auto named = named_model(path_or_name, models, networks, item);
  if (named || named.error().code != ErrorCode::unknown_name) return named;
  if (folder || fs::exists(p, none)) return open_file(path_or_name, item);
  // What can only be meant as a path is answered as one.
  const bool path = path_or_name.rfind("./", 0) == 0 || path_or_name.rfind("../", 0) == 0 ||
                    path_or_name.rfind('/', 0) == 0 || ends_with(path_or_name, ".json") ||
                    ends_with(path_or_name, ".gguf") || ends_with(path_or_name, ".safetensors") ||
                    ends_with(path_or_name, ".onnx");
  if (path) return open_file(path_or_name, item);
  return named;
}

}  // namespace trigon
