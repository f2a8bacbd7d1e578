#include "onnx/wire.hpp"

#include <algorithm>
#include <cstring>

#include "model/messages.hpp"
#include "onnx/messages.hpp"

namespace trigon::onnx {
namespace {

constexpr std::int64_t kWindow = 1 << 16;
// Nodes, attributes, tensors, names, kept numbers: the largest real graphs hold some hundred
// thousand.
constexpr std::int64_t kMostEntries = 1 << 23;

}  // namespace

std::uint8_t WireFile::byte(std::int64_t at) {
  if (!ok()) return 0;
  if (at < window_at_ || at >= window_at_ + static_cast<std::int64_t>(window_.size())) {
    const std::int64_t n = std::min(kWindow, file_->size() - at);
    auto more = file_->text(at, std::max<std::int64_t>(n, 1), "a field");
    if (!more) {
      refuse(more.error());
      return 0;
    }
    window_ = std::move(*more);
    window_at_ = at;
  }
  return static_cast<std::uint8_t>(window_[static_cast<std::size_t>(at - window_at_)]);
}

std::string WireFile::text(std::int64_t at, std::int64_t n) {
  std::string out;
  if (at >= window_at_ && at + n <= window_at_ + static_cast<std::int64_t>(window_.size()))
    return window_.substr(static_cast<std::size_t>(at - window_at_), static_cast<std::size_t>(n));
  if (!ok()) return out;
  auto read = file_->text(at, n, "a text");
  if (read) return *read;
  refuse(read.error());
  return out;
}

bool WireFile::spend(std::int64_t entries) {
  entries_ += entries;
  if (entries_ <= kMostEntries) return ok();
  refuse({ErrorCode::unsupported, message(OnnxMessage::too_many_entries, kMostEntries),
          file_->name(), std::nullopt});
  return false;
}

void Fields::damaged() {
  file_.refuse({ErrorCode::malformed, message(ModelMessage::not_this_format, "ONNX"),
                file_.source().where(at_), message(ModelMessage::get_file_again)});
}

std::uint64_t Fields::varint() {
  std::uint64_t v = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (at_ >= end_) break;
    const std::uint8_t b = file_.byte(at_++);
    if (shift < 64) v |= static_cast<std::uint64_t>(b & 127) << shift;
    if (b < 128) return v;
  }
  damaged();
  return 0;
}

std::uint64_t Fields::fixed(int width) {
  if (end_ - at_ < width) {
    damaged();
    return 0;
  }
  std::uint64_t v = 0;
  for (int i = 0; i < width; ++i) v |= static_cast<std::uint64_t>(file_.byte(at_++)) << (8 * i);
  return v;
}

bool Fields::next() {
  if (!file_.ok() || at_ >= end_) return false;
  const std::uint64_t key = varint();
  if (!file_.ok()) return false;
  wire_ = static_cast<std::uint32_t>(key & 7);
  number_ = static_cast<std::uint32_t>(key >> 3);
  span_ = {at_, at_};
  value_ = 0;
  if (number_ == 0 || key >> 32 != 0) {
    damaged();
  } else if (wire_ == 0) {
    value_ = varint();
  } else if (wire_ == 1) {
    value_ = fixed(8);
  } else if (wire_ == 5) {
    value_ = fixed(4);
  } else if (wire_ == 2) {
    const std::uint64_t n = varint();
    if (file_.ok() && n > static_cast<std::uint64_t>(end_ - at_)) {
      file_.refuse(
          {ErrorCode::malformed,
           message(ModelMessage::file_truncated, "a field",
                   static_cast<std::int64_t>(std::min<std::uint64_t>(n, INT64_MAX)), end_ - at_),
           file_.source().where(at_), message(ModelMessage::get_file_again)});
    } else if (file_.ok()) {
      span_ = {at_, at_ + static_cast<std::int64_t>(n)};
      at_ = span_.end;
    }
  } else {
    damaged();  // groups are not part of ONNX
  }
  return file_.ok();
}

std::string Fields::text(std::int64_t longest) {
  if (span_.size() > longest) {
    file_.refuse({ErrorCode::malformed,
                  message(ModelMessage::count_too_large, span_.size(), "a text", longest),
                  file_.source().where(span_.begin), std::nullopt});
    return {};
  }
  return file_.text(span_.begin, span_.size());
}

std::int64_t append_integers(WireFile& file, const Fields& f, std::vector<std::int64_t>& out,
                             std::int64_t most) {
  auto keep = [&](std::int64_t v) {
    if (static_cast<std::int64_t>(out.size()) < most && file.spend(1)) out.push_back(v);
  };
  if (!f.has_span()) {
    keep(f.integer());
    return 1;
  }
  std::int64_t n = 0;
  const Span s = f.span();
  std::uint64_t v = 0;
  int shift = 0;
  for (std::int64_t at = s.begin; at < s.end && file.ok(); ++at) {
    const std::uint8_t b = file.byte(at);
    if (shift < 64) v |= static_cast<std::uint64_t>(b & 127) << shift;
    shift += 7;
    if (b >= 128 && shift < 70) continue;
    keep(static_cast<std::int64_t>(v));
    v = 0;
    shift = 0;
    ++n;
  }
  return n;
}

std::int64_t append_floats(WireFile& file, const Fields& f, std::vector<double>& out, int width,
                           std::int64_t most) {
  auto keep = [&](std::uint64_t bits) {
    if (static_cast<std::int64_t>(out.size()) < most && file.spend(1))
      out.push_back(width == 4 ? float_of(bits) : double_of(bits));
  };
  if (!f.has_span()) {
    keep(f.raw());
    return 1;
  }
  const std::int64_t n = f.span().size() / width;
  for (std::int64_t i = 0; i < std::min(n, most) && file.ok(); ++i) {
    std::uint64_t bits = 0;
    for (int b = 0; b < width; ++b)
      bits |= static_cast<std::uint64_t>(file.byte(f.span().begin + i * width + b)) << (8 * b);
    keep(bits);
  }
  return n;
}

double float_of(std::uint64_t bits) {
  const auto narrow = static_cast<std::uint32_t>(bits);
  float v = 0;
  std::memcpy(&v, &narrow, sizeof v);
  return static_cast<double>(v);
}

double double_of(std::uint64_t bits) {
  double v = 0;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

}  // namespace trigon::onnx
