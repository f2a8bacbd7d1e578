#pragma once
// The protobuf wire format: fields of a message, one after another. Nothing is read but what is
// asked for, so the weights of a file of many GB stay on disk.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/byte_source.hpp"

namespace trigon::onnx {

// Bytes of the file, read through a window; the first error sticks.
class WireFile {
 public:
  explicit WireFile(const ByteSource& file) : file_(&file) {}
  const ByteSource& source() const { return *file_; }
  const std::optional<Error>& error() const { return error_; }
  bool ok() const { return !error_; }
  void refuse(Error e) {
    if (!error_) error_ = std::move(e);
  }
  std::uint8_t byte(std::int64_t at);
  std::string text(std::int64_t at, std::int64_t n);
  // What a hostile file may make the reader keep; false (and an error) when it is spent.
  bool spend(std::int64_t entries);

 private:
  const ByteSource* file_;
  std::optional<Error> error_;
  std::string window_;
  std::int64_t window_at_ = 0;
  std::int64_t entries_ = 0;
};

// A stretch of the file that holds a message, a text or packed numbers.
struct Span {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

// Walks the fields of one message:
//   for (Fields f(file, span); f.next();) switch (f.number()) ...
class Fields {
 public:
  Fields(WireFile& file, Span s) : file_(file), at_(s.begin), end_(s.end) {}
  bool next();
  std::uint32_t number() const { return number_; }
  bool has_span() const { return wire_ == 2; }
  bool fixed32() const { return wire_ == 5; }
  bool fixed64() const { return wire_ == 1; }
  std::uint64_t raw() const { return value_; }
  std::int64_t integer() const { return static_cast<std::int64_t>(value_); }
  Span span() const { return span_; }  // empty for numbers
  std::string text(std::int64_t longest = 65535);

 private:
  std::uint64_t varint();
  std::uint64_t fixed(int width);
  void damaged();

  WireFile& file_;
  std::int64_t at_, end_;
  std::uint32_t number_ = 0, wire_ = 0;
  std::uint64_t value_ = 0;
  Span span_;
};

// The numbers of a repeated field, packed or not: appended to `out`, at most `most` kept. Returns
// how many there are.
std::int64_t append_integers(WireFile& file, const Fields& f, std::vector<std::int64_t>& out,
                             std::int64_t most);
std::int64_t append_floats(WireFile& file, const Fields& f, std::vector<double>& out, int width,
                           std::int64_t most);
double float_of(std::uint64_t bits);   // IEEE single
double double_of(std::uint64_t bits);  // IEEE double

}  // namespace trigon::onnx
