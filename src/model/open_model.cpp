#include "model/open_model.hpp"

#include <algorithm>
#include <filesystem>

#include "model/checkpoint.hpp"
#include "model/gguf.hpp"
#include "model/json_value.hpp"
#include "model/messages.hpp"

namespace trigon {
namespace {

namespace fs = std::filesystem;

bool ends_with(std::string_view s, std::string_view tail) {
  return s.size() >= tail.size() && s.substr(s.size() - tail.size()) == tail;
}

bool is_there(const fs::path& p) {
  std::error_code none;
  return fs::exists(p, none);
}

std::vector<fs::path> files_with(const fs::path& folder, std::string_view extension) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    if (it->path().extension() == extension) out.push_back(it->path());
  std::sort(out.begin(), out.end());
  return out;
}

// Files that are models of their own: one for each split model.
std::vector<fs::path> gguf_models(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const fs::path& p : files_with(folder, ".gguf")) {
    auto split = split_name(p.filename().string());
    if (!split || split->part == 1) out.push_back(p);
  }
  return out;
}

Result<Model> open_folder(const fs::path& folder) {
  if (is_there(folder / "config.json")) return open_checkpoint_folder(folder.string());
  const auto gguf = gguf_models(folder);
  if (gguf.size() == 1) return open_gguf_file(gguf.front().string());
  if (gguf.size() > 1) {
    std::string list;
    for (const fs::path& p : gguf)
      list += (list.empty() ? "" : ", ") + printable(p.filename().string());
    return fail(ErrorCode::ambiguous_name,
                message(BaseMessage::ambiguous_name, printable(folder.string(), 400), "models"),
                printable(folder.string(), 400), message(BaseMessage::choose_one_of, list));
  }
  return fail(ErrorCode::unreadable, message(ModelMessage::no_model_here),
              printable(folder.string(), 400), message(ModelMessage::supported_files));
}

}  // namespace

bool holds_model(const std::string& folder) {
  return is_there(fs::path(folder) / "config.json") || !gguf_models(folder).empty();
}

Result<Model> open_model_file(const std::string& path) {
  std::error_code none;
  const fs::path p(path);
  if (fs::is_directory(p, none)) return open_folder(p);
  if (ends_with(path, ".gguf")) return open_gguf_file(path);
  const fs::path folder = p.has_parent_path() ? p.parent_path() : fs::path(".");
  if (ends_with(path, ".safetensors.index.json")) return open_checkpoint_folder(folder.string());
  if (ends_with(path, ".safetensors")) {
    if (is_there(folder / "config.json")) return open_checkpoint_folder(folder.string());
    return open_safetensors_file(path);
  }
  if (ends_with(path, ".json")) return open_config_file(path);
  auto source = ByteSource::open(path);
  if (!source) return tl::unexpected(source.error());
  char magic[4] = {};
  if (source->size() >= 4 && source->read(0, magic, 4, "the mark GGUF") &&
      std::string_view(magic, 4) == "GGUF")
    return open_gguf_file(path);
  return fail(ErrorCode::unsupported, message(ModelMessage::not_this_format, "model"),
              printable(path, 400), message(ModelMessage::supported_files));
}

}  // namespace trigon
