#include "model/gguf.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "model/json_value.hpp"
#include "model/messages.hpp"

namespace trigon {
namespace {

// Lists of layers and experts are far shorter; tokenizers are far longer.
constexpr std::int64_t kKeptNumbers = 16384;
constexpr std::int64_t kLongestKey = 65535, kLongestText = 16 << 20, kLongestName = 4096;
constexpr std::int64_t kMaxDimensions = 8;
// A sparse file of zeros can claim any number of empty entries; real files have thousands of
// tensors and at most a few hundred thousand tokens.
constexpr std::int64_t kMaxEntries = 1 << 20, kMaxTexts = 1 << 24;

// Value types of the metadata, by number.
enum ValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kList,
  kU64,
  kI64,
  kF64
};
std::int64_t width_of(std::uint32_t type) {
  constexpr std::int64_t kWidths[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < std::size(kWidths) ? kWidths[type] : 0;
}

// Reads on from an offset through a buffer; the first error sticks.
class Cursor {
 public:
  Cursor(const ByteSource& file, std::int64_t at) : file_(file), at_(at) {}

  std::int64_t offset() const { return at_; }
  std::int64_t left() const { return file_.size() - at_; }
  const std::optional<Error>& error() const { return error_; }
  bool ok() const { return !error_; }
  void set_big_endian(bool v) { big_ = v; }
  bool big_endian() const { return big_; }
  void refuse(Error e) {
    if (!error_) error_ = std::move(e);
  }

  std::uint64_t number(std::int64_t width, const char* what) {
    unsigned char b[8] = {};
    if (!take(reinterpret_cast<char*>(b), width, what)) return 0;
    std::uint64_t v = 0;
    for (std::int64_t i = 0; i < width; ++i) v = v << 8 | b[big_ ? i : width - 1 - i];
    return v;
  }
  // Lengths and counts: 32 bit in version 1.
  // At most `limit`, and no more than the rest of the file holds of `each` bytes.
  std::int64_t count(std::int64_t version, const char* what, std::int64_t each,
                     std::int64_t limit = INT64_MAX) {
    const std::int64_t start = at_;
    std::uint64_t v = number(version == 1 ? 4 : 8, what);
    if (!ok()) return 0;
    const std::int64_t most = std::min(limit, each > 0 ? left() / each : left());
    if (v > static_cast<std::uint64_t>(most)) {
      refuse({ErrorCode::malformed,
              message(ModelMessage::count_too_large,
                      v > static_cast<std::uint64_t>(INT64_MAX) ? INT64_MAX
                                                                : static_cast<std::int64_t>(v),
                      what, most),
              file_.where(start), message(ModelMessage::get_file_again)});
      return 0;
    }
    return static_cast<std::int64_t>(v);
  }
  std::string text(std::int64_t version, const char* what, std::int64_t longest) {
    std::int64_t n = count(version, what, 1);
    if (ok() && n > longest) {
      refuse({ErrorCode::malformed, message(ModelMessage::count_too_large, n, what, longest),
              file_.where(at_), std::nullopt});
      return {};
    }
    if (!ok()) return {};
    std::string s(static_cast<std::size_t>(n), '\0');
    take(s.data(), n, what);
    return s;
  }
  void skip(std::int64_t n, const char* what) {
    if (!ok()) return;
    if (n > left()) {
      char none = 0;
      refuse(file_.read(at_, &none, n, what).error());
      return;
    }
    at_ += n;
  }

 private:
  bool take(char* out, std::int64_t n, const char* what) {
    if (!ok()) return false;
    while (n > 0) {
      if (at_ < buffer_at_ || at_ >= buffer_at_ + static_cast<std::int64_t>(buffer_.size())) {
        std::int64_t wanted = std::min<std::int64_t>(1 << 16, left());
        if (wanted < std::min<std::int64_t>(n, 1 << 16)) {
          refuse(file_.read(at_, out, n, what).error());
          return false;
        }
        auto more = file_.text(at_, wanted, what);
        if (!more) {
          refuse(more.error());
          return false;
        }
        buffer_ = std::move(*more);
        buffer_at_ = at_;
      }
      const std::int64_t from = at_ - buffer_at_;
      const std::int64_t some =
          std::min<std::int64_t>(n, static_cast<std::int64_t>(buffer_.size()) - from);
      std::memcpy(out, buffer_.data() + from, static_cast<std::size_t>(some));
      out += some;
      at_ += some;
      n -= some;
    }
    return true;
  }

  const ByteSource& file_;
  std::int64_t at_;
  bool big_ = false;
  std::optional<Error> error_;
  std::string buffer_;
  std::int64_t buffer_at_ = 0;
};

double as_double(std::uint32_t type, std::uint64_t raw) {
  auto sign = [&](int bits) {
    const std::uint64_t top = std::uint64_t{1} << (bits - 1);
    return static_cast<std::int64_t>((raw ^ top) - top);
  };
  switch (type) {
    case kI8:
      return static_cast<double>(sign(8));
    case kI16:
      return static_cast<double>(sign(16));
    case kI32:
      return static_cast<double>(sign(32));
    case kI64:
      return static_cast<double>(static_cast<std::int64_t>(raw));
    case kF32: {
      auto bits = static_cast<std::uint32_t>(raw);
      float f;
      std::memcpy(&f, &bits, sizeof f);
      return static_cast<double>(f);
    }
    case kF64: {
      double d;
      std::memcpy(&d, &raw, sizeof d);
      return d;
    }
    default:
      return static_cast<double>(raw);
  }
}

class Reader {
 public:
  Reader(const ByteSource& file, GgufHeader& out) : file_(file), c_(file, 0), out_(out) {}

  Result<void> read() {
    if (auto r = start(); !r) return r;
    std::int64_t tensors = c_.count(out_.version, "tensors", 12, kMaxEntries);
    std::int64_t entries = c_.count(out_.version, "metadata entries", 9, kMaxEntries);
    for (std::int64_t i = 0; i < entries && c_.ok(); ++i) read_entry();
    for (std::int64_t i = 0; i < tensors && c_.ok(); ++i) read_tensor();
    if (!c_.ok()) return tl::unexpected(*c_.error());
    return place();
  }

 private:
  Result<void> start() {
    char magic[4];
    if (auto r = file_.read(0, magic, 4, "the mark GGUF"); !r) return r;
    if (std::memcmp(magic, "GGUF", 4) != 0)
      return fail(ErrorCode::malformed, message(ModelMessage::not_this_format, "GGUF"),
                  file_.where(0), message(ModelMessage::supported_files));
    c_.skip(4, "the mark GGUF");
    std::uint64_t version = c_.number(4, "the version");
    if (!c_.ok()) return tl::unexpected(*c_.error());
    if (version != 0 && (version & 0xffff) == 0) {
      // Versions are small: a large one is written in the other byte order.
      version = (version >> 24 & 0xff) | (version >> 8 & 0xff00);
      c_.set_big_endian(true);
      out_.big_endian = true;
    }
    if (version < 1 || version > 3)
      return fail(ErrorCode::unsupported,
                  message(ModelMessage::unsupported_version, "GGUF",
                          static_cast<std::int64_t>(version), "1 to 3"),
                  file_.where(4));
    out_.version = static_cast<std::int64_t>(version);
    return {};
  }

  void bad_type(const std::string& key, std::uint32_t type) {
    c_.refuse(
        {ErrorCode::malformed,
         message(ModelMessage::bad_gguf_value, printable(key), static_cast<std::int64_t>(type)),
         file_.where(c_.offset()), message(ModelMessage::get_file_again)});
  }

  void read_entry() {
    GgufEntry e;
    e.key = c_.text(out_.version, "a key", kLongestKey);
    auto type = static_cast<std::uint32_t>(c_.number(4, "a value's type"));
    if (!c_.ok()) return;
    if (type == kText) {
      e.value = c_.text(out_.version, "a text", kLongestText);
    } else if (type == kList) {
      e.value = read_list(e.key, 0);
    } else if (width_of(type) > 0) {
      std::uint64_t raw = c_.number(width_of(type), "a value");
      if (type == kBool)
        e.value = raw != 0;
      else if (type == kF32 || type == kF64)
        e.value = as_double(type, raw);
      else if (type == kU64 && raw > static_cast<std::uint64_t>(INT64_MAX))
        e.value = static_cast<double>(raw);
      else if (type == kU64 || type == kI64)
        e.value = static_cast<std::int64_t>(raw);
      else
        e.value = static_cast<std::int64_t>(as_double(type, raw));
    } else {
      bad_type(e.key, type);
    }
    if (c_.ok()) out_.metadata.push_back(std::move(e));
  }

  GgufList read_list(const std::string& key, int depth) {
    GgufList list;
    auto type = static_cast<std::uint32_t>(c_.number(4, "a list's type"));
    if (!c_.ok()) return list;
    const std::int64_t width = width_of(type);
    if ((width == 0 && type != kText && type != kList) || depth > 3) {
      bad_type(key, type);
      return list;
    }
    const std::int64_t each = width > 0 ? width : type == kText ? (out_.version == 1 ? 4 : 8) : 12;
    list.length =
        c_.count(out_.version, "list elements", each, type == kList ? kMaxEntries : kMaxTexts);
    if (!c_.ok()) return list;
    if (width > 0 && list.length > kKeptNumbers) {
      c_.skip(list.length * width, "a list");
      return list;
    }
    for (std::int64_t i = 0; i < list.length && c_.ok(); ++i) {
      if (type == kText) {
        std::int64_t n = c_.count(out_.version, "characters", 1);
        c_.skip(n, "a text");
      } else if (type == kList) {
        read_list(key, depth + 1);
      } else {
        list.numbers.push_back(as_double(type, c_.number(width, "a list")));
      }
    }
    return list;
  }

  void read_tensor() {
    Tensor t;
    const std::int64_t start = c_.offset();
    t.name = c_.text(out_.version, "a tensor's name", kLongestName);
    std::uint64_t dimensions = c_.number(4, "a tensor's dimensions");
    if (!c_.ok()) return;
    if (dimensions > kMaxDimensions) {
      c_.refuse({ErrorCode::malformed, message(ModelMessage::bad_tensor_shape, printable(t.name)),
                 file_.where(start), message(ModelMessage::get_file_again)});
      return;
    }
    std::int64_t row = 1, rows = 1;
    bool possible = true;
    for (std::uint64_t i = 0; i < dimensions; ++i) {
      std::uint64_t raw = c_.number(out_.version == 1 ? 4 : 8, "a dimension");
      const auto n = static_cast<std::int64_t>(raw);
      possible = possible && n >= 0;
      if (i == 0) row = n;
      if (i > 0 && possible) {
        auto product = checked_mul(rows, n);
        possible = product.has_value();
        rows = product.value_or(0);
      }
      // ggml counts from the contiguous dimension, we end with it.
      t.shape.insert(t.shape.begin(), n);
    }
    auto type = static_cast<std::uint32_t>(c_.number(4, "a tensor's type"));
    std::uint64_t offset = c_.number(8, "a tensor's offset");
    if (!c_.ok()) return;
    if (!possible || !checked_mul(row, rows) || offset > static_cast<std::uint64_t>(INT64_MAX)) {
      c_.refuse({ErrorCode::malformed, message(ModelMessage::bad_tensor_shape, printable(t.name)),
                 file_.where(start), message(ModelMessage::get_file_again)});
      return;
    }
    const GgmlType* known = ggml_type(type);
    t.format = known ? known->format : Format::unknown;
    t.stored_type = known ? std::string(known->name) : "type " + std::to_string(type);
    t.bytes = bytes_of(t.format, rows, row);
    if (t.format != Format::unknown && !t.bytes)
      c_.refuse({ErrorCode::malformed, message(ModelMessage::bad_tensor_shape, printable(t.name)),
                 file_.where(start), std::nullopt});
    t.file = file_.name();
    if (!names_.insert(t.name).second)
      c_.refuse({ErrorCode::malformed, message(ModelMessage::duplicate_tensor, printable(t.name)),
                 file_.where(start), std::nullopt});
    offsets_.push_back(static_cast<std::int64_t>(offset));
    out_.tensors.push_back(std::move(t));
  }

  Result<void> place() {
    std::int64_t alignment = out_.integer("general.alignment").value_or(32);
    if (alignment < 1 || alignment > (1 << 24))
      return fail(
          ErrorCode::malformed,
          message(ModelMessage::field_out_of_range, "general.alignment", alignment, 1, 1 << 24),
          file_.where(c_.offset()));
    const std::int64_t end = c_.offset();
    out_.data_offset = (end + alignment - 1) / alignment * alignment;
    if (file_.size() <= out_.data_offset && !out_.tensors.empty()) {
      out_.header_only = true;
      return {};
    }
    const std::int64_t data = file_.size() - out_.data_offset;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      const Tensor& t = out_.tensors[i];
      auto stop = checked_add(offsets_[i], t.bytes ? t.bytes->value() : 0);
      if (!stop || *stop > data)
        return fail(ErrorCode::malformed,
                    message(ModelMessage::bad_tensor_range, printable(t.name), offsets_[i],
                            stop.value_or(INT64_MAX)),
                    file_.where(out_.data_offset), message(ModelMessage::get_file_again));
    }
    return {};
  }

  const ByteSource& file_;
  Cursor c_;
  GgufHeader& out_;
  std::vector<std::int64_t> offsets_;
  std::set<std::string> names_;
};

}  // namespace

const GgufValue* GgufHeader::find(std::string_view key) const {
  for (const GgufEntry& e : metadata)
    if (e.key == key) return &e.value;
  return nullptr;
}
std::optional<std::int64_t> GgufHeader::integer(std::string_view key) const {
  const GgufValue* v = find(key);
  if (auto i = v ? std::get_if<std::int64_t>(v) : nullptr) return *i;
  return std::nullopt;
}
std::optional<double> GgufHeader::real(std::string_view key) const {
  const GgufValue* v = find(key);
  if (auto d = v ? std::get_if<double>(v) : nullptr) return *d;
  if (auto i = v ? std::get_if<std::int64_t>(v) : nullptr) return static_cast<double>(*i);
  return std::nullopt;
}
std::optional<std::string> GgufHeader::text(std::string_view key) const {
  const GgufValue* v = find(key);
  if (auto s = v ? std::get_if<std::string>(v) : nullptr) return *s;
  return std::nullopt;
}
std::optional<bool> GgufHeader::flag(std::string_view key) const {
  const GgufValue* v = find(key);
  if (auto b = v ? std::get_if<bool>(v) : nullptr) return *b;
  return std::nullopt;
}
const GgufList* GgufHeader::list(std::string_view key) const {
  const GgufValue* v = find(key);
  return v ? std::get_if<GgufList>(v) : nullptr;
}

Result<GgufHeader> read_gguf(const ByteSource& file) {
  GgufHeader h;
  if (auto r = Reader(file, h).read(); !r) return tl::unexpected(r.error());
  return h;
}

}  // namespace trigon
