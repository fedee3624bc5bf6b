// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_header.h"

#include <gguf.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>

#include "base/as_size.h"
#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

/// Reads forward, and never past the end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  template <class T>
  T take(std::string_view what) {
    T value;
    std::memcpy(&value, need(sizeof(T), what), sizeof(T));
    return value;
  }
  std::string_view text(std::string_view what) {
    const auto length = take<std::uint64_t>(what);
    return {reinterpret_cast<const char*>(need(length, what)), as_size(length)};
  }
  const std::byte* need(std::uint64_t length, std::string_view what) {
    if (length > left()) {
      throw ModelError(fmt::format("{}: truncated: {} at byte {} needs {} bytes, but the file has {}", path_,
                                   brief(what), at_, length, bytes_.size()));
    }
    const std::byte* const here = bytes_.data() + at_;
    at_ += as_size(length);
    return here;
  }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
  std::size_t at_ = 0;
};

/// 0: unknown or not a number type.
std::size_t scalar_size(std::uint32_t type) {
  constexpr std::array<std::size_t, GGUF_TYPE_COUNT> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < kSizes.size() ? kSizes[type] : 0;
}

class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& path) : in_(file, path), path_(path) {}

  GgufHeader read() {
    const auto [tensors, keys] = counts();
    for (std::uint64_t i = 0; i < keys; ++i) key_value();
    for (std::uint64_t i = 0; i < tensors; ++i) tensor();
    out_.bytes = in_.at();
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw ModelError(fmt::format("{}: {}", path_, what)); }

  /// Numbers of tensors and keys.
  std::pair<std::uint64_t, std::uint64_t> counts() {
    const auto magic = in_.take<std::array<char, 4>>("the magic");
    if (std::string_view(magic.data(), 4) != "GGUF") fail("not a GGUF file (it does not begin with 'GGUF')");
    const auto version = in_.take<std::uint32_t>("the version");
    if (version != 2 && version != 3) fail(fmt::format("GGUF version {} is not supported (2 and 3 are)", version));
    const auto tensors = in_.take<std::uint64_t>("the number of tensors");
    const auto keys = in_.take<std::uint64_t>("the number of keys");
    // The shortest key takes 8 + 1 + 4 + 1 bytes and the shortest tensor 8 + 1 + 4 + 8 + 4 + 8.
    if (keys > in_.left() / 14)
      fail(fmt::format("the header claims {} keys, which cannot fit in {} bytes", keys, in_.left()));
    if (tensors > in_.left() / 33)
      fail(fmt::format("the header claims {} tensors, which cannot fit in {} bytes", tensors, in_.left()));
    return {tensors, keys};
  }

  void key_value() {
    const auto key = in_.text("a key");
    Value value;
    value.type = in_.take<std::uint32_t>("a key's type");
    if (value.type == GGUF_TYPE_ARRAY) {
      value.element = in_.take<std::uint32_t>("an array's type");
      value.count = in_.take<std::uint64_t>("an array's length");
    }
    const auto element = value.type == GGUF_TYPE_ARRAY ? value.element : value.type;
    if (element == GGUF_TYPE_STRING) {
      texts(key, value);
    } else {
      numbers(key, element, value);
    }
    out_.keys.emplace_back(key, std::move(value));
  }

  void texts(std::string_view key, Value& value) {
    if (value.count > in_.left() / sizeof(std::uint64_t))
      fail(fmt::format("key {} claims {} strings, more than the file can hold", brief(key), value.count));
    value.texts.reserve(value.count);
    for (std::uint64_t i = 0; i < value.count; ++i) value.texts.push_back(in_.text(key));
  }

  void numbers(std::string_view key, std::uint32_t type, Value& value) {
    const std::size_t size = scalar_size(type);
    if (size == 0) fail(fmt::format("key {} has the type {}, which is unknown or not supported", brief(key), type));
    if (value.count > in_.left() / size)
      fail(fmt::format("truncated: key {} claims {} elements, more than the file can hold", brief(key), value.count));
    value.data = in_.need(value.count * size, key);
  }

  void tensor() {
    TensorEntry& entry = out_.tensors.emplace_back();
    entry.name = in_.text("a tensor's name");
    entry.dims = in_.take<std::uint32_t>("a tensor's dimensions");
    if (entry.dims < 1 || entry.dims > entry.shape.size())
      fail(fmt::format("tensor {} has {} dimensions, expected 1 to {}", brief(entry.name), entry.dims,
                       entry.shape.size()));
    for (std::uint32_t i = 0; i < entry.dims; ++i) entry.shape.at(i) = in_.take<std::int64_t>("a tensor's shape");
    entry.type = in_.take<std::uint32_t>("a tensor's type");
    entry.offset = in_.take<std::uint64_t>("a tensor's offset");
  }

  Cursor in_;
  const std::string& path_;
  GgufHeader out_;
};

template <class T>
std::int64_t first_of(const Value& value) {
  T number = 0;
  std::memcpy(&number, value.data, sizeof(number));
  return static_cast<std::int64_t>(number);
}

}  // namespace

const Value* GgufHeader::find(std::string_view key) const {
  const auto at = std::find_if(keys.begin(), keys.end(), [key](const auto& pair) { return pair.first == key; });
  return at == keys.end() ? nullptr : &at->second;
}

std::optional<std::int64_t> GgufHeader::integer(std::string_view key) const {
  const Value* const value = find(key);
  if (value == nullptr || value->count == 0) return std::nullopt;
  switch (value->type == GGUF_TYPE_ARRAY ? value->element : value->type) {
    case GGUF_TYPE_UINT8:
      return first_of<std::uint8_t>(*value);
    case GGUF_TYPE_INT8:
      return first_of<std::int8_t>(*value);
    case GGUF_TYPE_UINT16:
      return first_of<std::uint16_t>(*value);
    case GGUF_TYPE_INT16:
      return first_of<std::int16_t>(*value);
    case GGUF_TYPE_UINT32:
      return first_of<std::uint32_t>(*value);
    case GGUF_TYPE_INT32:
      return first_of<std::int32_t>(*value);
    case GGUF_TYPE_UINT64:
      return first_of<std::uint64_t>(*value);
    case GGUF_TYPE_INT64:
      return first_of<std::int64_t>(*value);
    default:
      return std::nullopt;
  }
}

std::optional<std::string_view> GgufHeader::text(std::string_view key) const {
  const Value* const value = find(key);
  if (value == nullptr || value->type != GGUF_TYPE_STRING) return std::nullopt;
  return value->texts.front();
}

GgufHeader read_gguf_header(std::span<const std::byte> file, const std::string& path) {
  return Reader(file, path).read();
}

}  // namespace winnow::model
