#include "model/safetensors.hpp"

#include <algorithm>
#include <cstring>

#include "model/json_value.hpp"
#include "model/messages.hpp"

namespace trigon {
namespace {

// The format's own limit.
constexpr std::int64_t kMaxHeader = 100'000'000;

struct StoredType {
  std::string_view name;
  Format format;
  std::int64_t bits;
};
constexpr StoredType kTypes[] = {
    {"F64", Format::f64, 64},
    {"F32", Format::f32, 32},
    {"F16", Format::f16, 16},
    {"BF16", Format::bf16, 16},
    {"F8_E4M3", Format::f8_e4m3, 8},
    {"F8_E5M2", Format::f8_e5m2, 8},
    {"F8_E8M0", Format::u8, 8},
    {"F8_E4M3FNUZ", Format::f8_e4m3, 8},
    {"F8_E5M2FNUZ", Format::f8_e5m2, 8},
    {"I64", Format::i64, 64},
    {"U64", Format::i64, 64},
    {"I32", Format::i32, 32},
    {"U32", Format::i32, 32},
    {"I16", Format::i16, 16},
    {"U16", Format::i16, 16},
    {"I8", Format::i8, 8},
    {"U8", Format::u8, 8},
    {"BOOL", Format::boolean, 8},
    {"F4", Format::unknown, 4},
    {"F6_E2M3", Format::unknown, 6},
    {"F6_E3M2", Format::unknown, 6},
    {"C64", Format::unknown, 64},
};

const StoredType* type_of(std::string_view name) {
  for (const StoredType& t : kTypes)
    if (t.name == name) return &t;
  return nullptr;
}

std::uint64_t little_endian(const char* p) {
  std::uint64_t v = 0;
  for (int i = 7; i >= 0; --i) v = v << 8 | static_cast<unsigned char>(p[i]);
  return v;
}

struct Placed {
  Tensor tensor;
  std::int64_t begin = 0, end = 0;
};

Result<Placed> read_entry(const std::string& name, const Json& entry, const ByteSource& file,
                          std::int64_t data_size) {
  const std::string where = file.name() + "#" + pointer_to("", name);
  const std::string shown = printable(name);
  const Json *type = entry.find("dtype"), *shape = entry.find("shape"),
             *offsets = entry.find("data_offsets");
  if (!type || !type->text() || !shape || !shape->array() || !offsets || !offsets->array() ||
      offsets->array()->size() != 2)
    return fail(ErrorCode::malformed,
                message(BaseMessage::missing_key, "dtype, shape or data_offsets"), where);
  Placed p;
  p.tensor.name = name;
  p.tensor.stored_type = printable(*type->text(), 32);
  p.tensor.file = file.name();
  std::optional<std::int64_t> elements = 1;
  for (const Json& d : *shape->array()) {
    auto n = d.integer();
    if (!n || *n < 0 || shape->array()->size() > 16)
      return fail(ErrorCode::malformed, message(ModelMessage::bad_tensor_shape, shown),
                  where + "/shape");
    p.tensor.shape.push_back(*n);
    elements = elements ? checked_mul(*elements, *n) : elements;
  }
  if (!elements)
    return fail(ErrorCode::malformed, message(ModelMessage::bad_tensor_shape, shown),
                where + "/shape");
  auto begin = (*offsets->array())[0].integer(), end = (*offsets->array())[1].integer();
  if (!begin || !end || *begin < 0 || *end < *begin || *end > data_size)
    return fail(ErrorCode::malformed,
                message(ModelMessage::bad_tensor_range, shown, begin ? *begin : std::int64_t{-1},
                        end ? *end : std::int64_t{-1}),
                where + "/data_offsets", message(ModelMessage::get_file_again));
  p.begin = *begin;
  p.end = *end;
  p.tensor.bytes = ByteCount(p.end - p.begin);
  if (const StoredType* t = type_of(*type->text())) {
    p.tensor.format = t->format;
    auto bits = checked_mul(*elements, t->bits);
    if (!bits || *bits / 8 + (*bits % 8 != 0) != p.end - p.begin)
      return fail(ErrorCode::malformed,
                  message(ModelMessage::bad_tensor_size, shown, p.end - p.begin,
                          bits ? *bits / 8 : std::int64_t{-1}),
                  where + "/data_offsets");
  }
  return p;
}

bool ends_with(std::string_view s, std::string_view tail) {
  return s.size() >= tail.size() && s.substr(s.size() - tail.size()) == tail;
}

std::int64_t elements_of(const Tensor& t) {
  std::int64_t n = 1;
  for (std::int64_t d : t.shape) n = checked_mul(n, d).value_or(INT64_MAX);
  return n;
}

}  // namespace

Result<SafetensorsHeader> read_safetensors(const ByteSource& file) {
  char length_bytes[8];
  if (auto r = file.read(0, length_bytes, 8, "the header's length"); !r)
    return tl::unexpected(r.error());
  const std::uint64_t length = little_endian(length_bytes);
  if (length < 2 || length > static_cast<std::uint64_t>(kMaxHeader))
    return fail(ErrorCode::malformed, message(ModelMessage::not_this_format, "safetensors"),
                file.where(0), message(ModelMessage::supported_files));
  const auto header_size = static_cast<std::int64_t>(length);
  auto text = file.text(8, header_size, "the header");
  if (!text) return tl::unexpected(text.error());
  auto json = parse_json(*text, file.name(), JsonLimits{8, 8'000'000});
  if (!json) return tl::unexpected(json.error());
  if (!json->object())
    return fail(ErrorCode::malformed, message(BaseMessage::wrong_type, "the header", "an object"),
                file.where(8));
  SafetensorsHeader h;
  h.data_offset = 8 + header_size;
  std::int64_t data_size = file.size() - h.data_offset;
  if (data_size == 0) {
    h.header_only = true;
    data_size = INT64_MAX;
  }
  std::vector<Placed> placed;
  for (const auto& [name, entry] : *json->object()) {
    if (name == "__metadata__") continue;
    auto p = read_entry(name, entry, file, data_size);
    if (!p) return tl::unexpected(p.error());
    placed.push_back(std::move(*p));
  }
  // Each name once, no byte twice.
  std::vector<const Placed*> by_name;
  for (const Placed& p : placed) by_name.push_back(&p);
  std::sort(by_name.begin(), by_name.end(),
            [](const Placed* a, const Placed* b) { return a->tensor.name < b->tensor.name; });
  for (std::size_t i = 1; i < by_name.size(); ++i)
    if (by_name[i]->tensor.name == by_name[i - 1]->tensor.name)
      return fail(ErrorCode::malformed,
                  message(ModelMessage::duplicate_tensor, printable(by_name[i]->tensor.name)),
                  file.where(8));
  std::sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return a.begin != b.begin ? a.begin < b.begin
           : a.end != b.end   ? a.end < b.end
                              : a.tensor.name < b.tensor.name;
  });
  std::int64_t reached = 0;
  for (Placed& p : placed) {
    if (p.begin < reached && p.end > p.begin)
      return fail(ErrorCode::malformed,
                  message(ModelMessage::bad_tensor_range, printable(p.tensor.name), p.begin, p.end),
                  file.name() + "#" + pointer_to("", p.tensor.name));
    reached = std::max(reached, p.end);
    h.tensors.push_back(std::move(p.tensor));
  }
  return h;
}

std::vector<std::string> SafetensorsIndex::files() const {
  std::vector<std::string> out;
  for (const auto& [tensor, file] : shards) out.push_back(file);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Result<SafetensorsIndex> read_safetensors_index(std::string_view text, const std::string& where) {
  auto json = parse_json(text, where, JsonLimits{8, 8'000'000});
  if (!json) return tl::unexpected(json.error());
  const Json* map = json->find("weight_map");
  if (!map || !map->object())
    return fail(ErrorCode::malformed, message(BaseMessage::missing_key, "weight_map"),
                where + "#/weight_map");
  SafetensorsIndex index;
  if (const Json* metadata = json->find("metadata"))
    if (const Json* total = metadata->find("total_size")) {
      if (auto n = total->integer(); n && *n >= 0) index.total_size = *n;
      if (auto d = total->real(); d && *d >= 0 && *d < 9e15)
        index.total_size = static_cast<std::int64_t>(*d);
    }
  for (const auto& [tensor, file] : *map->object()) {
    const std::string* name = file.text();
    const bool plain = name && !name->empty() && name->size() < 256 &&
                       name->find('/') == name->npos && name->find('\0') == name->npos &&
                       *name != "." && *name != "..";
    if (!plain)
      return fail(ErrorCode::malformed,
                  message(ModelMessage::bad_shard_name, name ? printable(*name) : ""),
                  where + "#" + pointer_to("/weight_map", tensor));
    index.shards.emplace_back(tensor, *name);
  }
  std::sort(index.shards.begin(), index.shards.end());
  for (std::size_t i = 1; i < index.shards.size(); ++i)
    if (index.shards[i].first == index.shards[i - 1].first)
      return fail(ErrorCode::malformed,
                  message(ModelMessage::duplicate_tensor, printable(index.shards[i].first)),
                  where + "#/weight_map");
  return index;
}

StoredParameters stored_parameters(const Tensor& t, std::int64_t packed_bits) {
  static constexpr std::string_view kAuxiliary[] = {".qzeros",
                                                    ".scales",
                                                    ".g_idx",
                                                    ".weight_scale",
                                                    ".weight_scale_inv",
                                                    ".weight_scale_2",
                                                    ".input_scale",
                                                    ".weight_zero_point",
                                                    ".weight_shape",
                                                    ".weight_g_idx",
                                                    ".absmax",
                                                    ".quant_map",
                                                    ".nested_absmax",
                                                    ".nested_quant_map",
                                                    ".SCB",
                                                    ".weight_format",
                                                    ".k_scale",
                                                    ".v_scale",
                                                    ".kv_scale",
                                                    ".output_scale",
                                                    ".perm",
                                                    "_scales",
                                                    "_scale_inv",
                                                    ".input_global_scale",
                                                    ".weight_global_scale",
                                                    ".rotary_emb.inv_freq",
                                                    ".inv_freq",
                                                    ".masked_bias",
                                                    ".attn.bias",
                                                    ".attention.bias",
                                                    ".zeros",
                                                    ".B_bias"};
  for (std::string_view tail : kAuxiliary)
    if (ends_with(t.name, tail)) return {0, true};
  if (t.name.find(".quant_state.") != t.name.npos) return {0, true};
  const std::int64_t n = elements_of(t);
  auto times = [&](std::int64_t k) { return checked_mul(n, k).value_or(INT64_MAX); };
  const bool words = t.format == Format::i32, octets = t.format == Format::u8;
  if (packed_bits < 1 || packed_bits > 8) packed_bits = 4;
  if (ends_with(t.name, ".qweight") || ends_with(t.name, ".weight_packed")) {
    if (words) return {times(32) / packed_bits, false};
    if (octets || t.format == Format::i8) return {times(8) / packed_bits, false};
  }
  // MXFP4 blocks, NVFP4 and bitsandbytes hold two 4-bit values in a byte.
  if (octets && (ends_with(t.name, "_blocks") || ends_with(t.name, ".weight")))
    return {times(2), false};
  return {n, false};
}

}  // namespace trigon
