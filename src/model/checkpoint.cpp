#include "model/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "model/gguf_model.hpp"
#include "model/hf_config.hpp"
#include "model/messages.hpp"
#include "model/safetensors.hpp"

namespace trigon {
namespace {

namespace fs = std::filesystem;

bool ends_with(std::string_view s, std::string_view tail) {
  return s.size() >= tail.size() && s.substr(s.size() - tail.size()) == tail;
}

bool is_file(const fs::path& p) {
  std::error_code none;
  return fs::is_regular_file(p, none);
}

struct Config {
  Json json;
  DecoderSpec spec;
  std::int64_t packed_bits = 4;
};

Result<Config> read_config(const fs::path& path) {
  auto text = read_small_file(path.string());
  if (!text) return tl::unexpected(text.error());
  const std::string where = printable(path.string(), 400);
  auto json = parse_json(*text, where);
  if (!json) return tl::unexpected(json.error());
  std::optional<Json> quantization;
  const fs::path beside = path.parent_path() / "hf_quant_config.json";
  if (is_file(beside)) {
    auto more = read_small_file(beside.string());
    if (!more) return tl::unexpected(more.error());
    auto parsed = parse_json(*more, printable(beside.string(), 400));
    if (!parsed) return tl::unexpected(parsed.error());
    quantization = std::move(*parsed);
  }
  auto spec = read_hf_config(*json, where, quantization ? &*quantization : nullptr);
  if (!spec) return tl::unexpected(spec.error());
  Config c{std::move(*json), std::move(*spec), 4};
  if (const Json* method = c.json.find("quantization_config"))
    for (const char* name : {"bits", "w_bit"})
      if (const Json* bits = method->find(name))
        if (auto n = bits->integer()) c.packed_bits = *n;
  return c;
}

struct Shards {
  std::vector<Tensor> tensors;  // of the files that are there, or bare names of an index
  bool listed = false;          // the names are complete
  bool complete = false;        // with shapes, of every file
  std::optional<std::int64_t> bytes;
  std::int64_t files = 0, absent = 0;
};

Result<void> add_file(const fs::path& path, Shards& out) {
  auto source = ByteSource::open(path.string());
  if (!source) return tl::unexpected(source.error());
  auto header = read_safetensors(*source);
  if (!header) return tl::unexpected(header.error());
  for (Tensor& t : header->tensors) {
    t.file = path.filename().string();
    out.tensors.push_back(std::move(t));
  }
  return {};
}

Result<Shards> read_shards(const fs::path& folder, const fs::path& index_path) {
  Shards out;
  if (is_file(index_path)) {
    auto text = read_small_file(index_path.string(), 256 << 20);
    if (!text) return tl::unexpected(text.error());
    auto index = read_safetensors_index(*text, printable(index_path.string(), 400));
    if (!index) return tl::unexpected(index.error());
    out.listed = true;
    out.bytes = index->total_size;
    const auto files = index->files();
    out.files = static_cast<std::int64_t>(files.size());
    for (const std::string& f : files) {
      if (!is_file(folder / f)) {
        ++out.absent;
        continue;
      }
      if (auto r = add_file(folder / f, out); !r) return tl::unexpected(r.error());
    }
    if (out.absent > 0) {
      // Names of what the absent files hold.
      std::map<std::string, bool> have;
      for (const Tensor& t : out.tensors) have[t.name] = true;
      for (const auto& [name, file] : index->shards)
        if (!have.count(name)) {
          Tensor t;
          t.name = name;
          t.file = file;
          out.tensors.push_back(std::move(t));
        }
    }
  } else {
    std::vector<fs::path> files;
    std::error_code ec;
    for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
      if (it->path().extension() == ".safetensors" && is_file(it->path()))
        files.push_back(it->path());
    std::sort(files.begin(), files.end());
    // A lone model.safetensors is the model; adapters may lie beside it.
    if (is_file(folder / "model.safetensors")) files = {folder / "model.safetensors"};
    for (const fs::path& f : files)
      if (auto r = add_file(f, out); !r) return tl::unexpected(r.error());
    out.files = static_cast<std::int64_t>(files.size());
    out.listed = !files.empty();
  }
  out.complete = out.files > 0 && out.absent == 0;
  if (out.complete) {
    std::int64_t total = 0;
    for (const Tensor& t : out.tensors)
      total = checked_add(total, t.bytes ? t.bytes->value() : 0).value_or(INT64_MAX);
    out.bytes = total;
  }
  return out;
}

bool names_head(std::string_view name) {
  return ends_with(name, "lm_head.weight") || ends_with(name, "embed_out.weight") ||
         ends_with(name, "lm_head.qweight") || ends_with(name, "lm_head.weight_packed") ||
         name == "output.weight" || ends_with(name, "output_layer.weight");
}

bool names_embedding(std::string_view name) {
  for (std::string_view tail : {"embed_tokens.weight", "wte.weight", "word_embeddings.weight",
                                "embed_in.weight", "tok_embeddings.weight"})
    if (ends_with(name, tail)) return true;
  return false;
}

// The first whole component that is a number: the layer.
std::optional<std::int64_t> layer_of(std::string_view name) {
  for (std::size_t start = 0; start < name.size();) {
    std::size_t end = std::min(name.find('.', start), name.size());
    std::string_view part = name.substr(start, end - start);
    std::int64_t n = 0;
    auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (error == std::errc{} && stop == part.data() + part.size() && !part.empty()) return n;
    start = end + 1;
  }
  return std::nullopt;
}

bool outside_language_model(const Tensor& t, std::int64_t layers) {
  for (std::string_view part : {"vision", "visual", "audio", "multi_modal", "mm_projector", "mtp."})
    if (t.name.find(part) != t.name.npos) return true;
  auto layer = layer_of(t.name);
  return layer && *layer >= layers;
}

// What the tensors say better than the config.
void correct(Config& c, const Shards& shards) {
  bool head = false;
  for (const Tensor& t : shards.tensors) {
    head = head || names_head(t.name);
    if (names_embedding(t.name) && t.shape.size() == 2 && t.shape[0] > 0 &&
        !outside_language_model(t, static_cast<std::int64_t>(c.spec.layers.size())))
      c.spec.vocabulary = t.shape[0];
  }
  if (!shards.listed) return;
  const bool stated = c.json.find("tie_word_embeddings") != nullptr;
  if (!head)
    c.spec.tied = true;
  else if (!stated && !c.json.find("text_config"))
    c.spec.tied = false;
}

void note_differences(const Shards& shards, std::int64_t packed_bits, Model& m) {
  if (shards.absent > 0)
    m.notes.push_back(message(ModelMessage::note_missing_shards, shards.absent, shards.files));
  const Stack* s = language_stack(m);
  if (!s) return;
  std::int64_t extra = 0, parameters = 0;
  const Tensor* first = nullptr;
  for (const Tensor& t : shards.tensors) {
    if (!outside_language_model(t, s->layers())) continue;
    if (!first) first = &t;
    ++extra;
    if (!t.shape.empty())
      parameters =
          checked_add(parameters, stored_parameters(t, packed_bits).count).value_or(INT64_MAX);
  }
  if (first)
    m.notes.push_back(
        message(ModelMessage::note_extra_tensors, extra, parameters, printable(first->name)));
}

}  // namespace

Result<Model> open_config_file(const std::string& path) {
  auto c = read_config(path);
  if (!c) return tl::unexpected(c.error());
  c->spec.id = fs::path(path).filename().string();
  auto m = build_decoder(c->spec, printable(path, 400));
  if (m) m->source = printable(path, 400);
  return m;
}

Result<Model> open_checkpoint_folder(const std::string& folder) {
  const fs::path base(folder);
  auto c = read_config(base / "config.json");
  if (!c) return tl::unexpected(c.error());
  auto shards = read_shards(base, base / "model.safetensors.index.json");
  if (!shards) return tl::unexpected(shards.error());
  correct(*c, *shards);
  fs::path name = base.lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  c->spec.id = printable(name.filename().string());
  auto m = build_decoder(c->spec, printable((base / "config.json").string(), 400));
  if (!m) return m;
  m->source = printable(folder, 400);
  if (shards->bytes) m->stored_bytes = ByteCount(*shards->bytes);
  note_differences(*shards, c->packed_bits, *m);
  m->tensors = std::move(shards->tensors);
  return m;
}

Result<Model> open_safetensors_file(const std::string& path) {
  Shards shards;
  if (auto r = add_file(path, shards); !r) return tl::unexpected(r.error());
  Model m;
  m.id = printable(fs::path(path).filename().string());
  m.source = printable(path, 400);
  std::int64_t total = 0;
  for (const Tensor& t : shards.tensors)
    total = checked_add(total, t.bytes ? t.bytes->value() : 0).value_or(INT64_MAX);
  m.stored_bytes = ByteCount(total);
  m.tensors = std::move(shards.tensors);
  return m;
}

Result<Model> open_gguf_file(const std::string& path) {
  const fs::path given(path);
  std::vector<fs::path> parts{given};
  if (auto split = split_name(given.filename().string())) {
    parts.clear();
    for (std::int64_t i = 1; i <= split->parts; ++i)
      parts.push_back(given.parent_path() / split->of(i));
    // The metadata is in the first part alone.
    if (!is_file(parts.front()))
      return fail(ErrorCode::unreadable,
                  message(ModelMessage::missing_shard, printable(parts.front().string(), 400)),
                  printable(path, 400));
  }
  std::optional<GgufHeader> first;
  std::vector<Tensor> tensors;
  std::int64_t absent = 0;
  for (const fs::path& part : parts) {
    if (first && !is_file(part)) {
      ++absent;
      continue;
    }
    auto source = ByteSource::open(part.string());
    if (!source) return tl::unexpected(source.error());
    auto header = read_gguf(*source);
    if (!header) return tl::unexpected(header.error());
    for (Tensor& t : header->tensors) {
      t.file = part.filename().string();
      tensors.push_back(std::move(t));
    }
    header->tensors.clear();
    if (!first) first = std::move(*header);
  }
  const std::string where = printable(parts.front().string(), 400);
  if (absent > 0)
    return fail(
        ErrorCode::unreadable,
        message(ModelMessage::note_missing_shards, absent, static_cast<std::int64_t>(parts.size())),
        where, message(ModelMessage::get_file_again));
  auto read = read_gguf_model(*first, tensors, where);
  if (!read) return tl::unexpected(read.error());
  auto name = first->text("general.name");
  read->spec.id = printable(name && !name->empty() ? *name : given.stem().string());
  auto m = build_decoder(read->spec, where);
  if (!m) return m;
  m->source = printable(path, 400);
  std::int64_t total = 0;
  std::map<std::string, std::int64_t> unknown;
  for (const Tensor& t : tensors) {
    if (t.bytes)
      total = checked_add(total, t.bytes->value()).value_or(INT64_MAX);
    else
      ++unknown[t.stored_type];
  }
  for (const auto& [type, count] : unknown)
    m->notes.push_back(message(ModelMessage::note_unknown_type, type, count));
  if (unknown.empty()) m->stored_bytes = ByteCount(total);
  if (first->header_only) m->notes.push_back(message(ModelMessage::note_header_only));
  m->tensors = std::move(tensors);
  return m;
}

}  // namespace trigon
