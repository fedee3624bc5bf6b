#include "model/gguf_check.h"

#include <ggml.h>
#include <gguf.h>
#include <spdlog/fmt/fmt.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "model/vocab_check.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

constexpr std::uint64_t kMaxName = 63;  // ggml keeps tensor names in 64 bytes

/// Reads forward and never past the end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  template <class T>
  T take(const char* what) {
    T value;
    std::memcpy(&value, need(sizeof(T), what), sizeof(T));
    return value;
  }
  std::string_view text(const char* what) {
    const auto length = take<std::uint64_t>(what);
    return {reinterpret_cast<const char*>(need(length, what)), static_cast<std::size_t>(length)};
  }
  const std::byte* need(std::uint64_t length, const char* what) {
    if (length > bytes_.size() - at_) {
      throw ModelError(fmt::format("{}: truncated: {} at byte {} needs {} bytes, the file has {}", path_, what, at_,
                                   length, bytes_.size()));
    }
    const std::byte* const here = bytes_.data() + at_;
    at_ += static_cast<std::size_t>(length);
    return here;
  }
  std::size_t at() const { return at_; }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
  std::size_t at_ = 0;
};

std::size_t scalar_size(std::uint32_t type) {
  constexpr std::array<std::size_t, GGUF_TYPE_COUNT> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < kSizes.size() ? kSizes[type] : 0;
}

class Check {
 public:
  Check(std::span<const std::byte> file, const std::string& path) : in_(file, path), path_(path) {}

  void run() {
    header();
    for (std::uint64_t i = 0; i < keys_; ++i) key_value();
    vocabulary_.check(path_);
    for (std::uint64_t i = 0; i < tensors_; ++i) tensor();
    places();
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw ModelError(fmt::format("{}: {}", path_, what)); }

  void header() {
    const auto magic = in_.take<std::array<char, 4>>("the magic");
    if (std::string_view(magic.data(), 4) != "GGUF") fail("not a GGUF file (it does not begin with 'GGUF')");
    const auto version = in_.take<std::uint32_t>("the version");
    if (version != 2 && version != 3) fail(fmt::format("GGUF version {} is not supported (2 and 3 are)", version));
    tensors_ = in_.take<std::uint64_t>("the number of tensors");
    keys_ = in_.take<std::uint64_t>("the number of keys");
    // The shortest key takes 8 + 1 + 4 + 1 bytes and the shortest tensor 8 + 1 + 4 + 8 + 4 + 8.
    const std::uint64_t left = in_.size() - in_.at();
    if (keys_ > left / 14) fail(fmt::format("the header claims {} keys, which cannot fit in {} bytes", keys_, left));
    if (tensors_ > left / 33)
      fail(fmt::format("the header claims {} tensors, which cannot fit in {} bytes", tensors_, left));
  }

  void key_value() {
    const std::string key(in_.text("a key"));
    if (key.empty()) fail("a key has no name");
    if (key.find('\0') != std::string::npos) fail("a key has a zero byte in its name");
    if (!names_.insert(key).second) fail(fmt::format("key {} is there twice", key));
    const auto type = in_.take<std::uint32_t>("a key's type");
    Value value{type, 0, 1, nullptr, {}};
    if (type == GGUF_TYPE_ARRAY) {
      array(key, value);
    } else {
      single(key, value);
    }
    if (key == "general.alignment") alignment(value);
    if (key == "general.architecture" && type != GGUF_TYPE_STRING) fail("key general.architecture is not a string");
    if (std::string_view(key).starts_with("tokenizer.")) vocabulary_.add(key, std::move(value), path_);
  }

  void single(const std::string& key, Value& value) {
    if (value.type == GGUF_TYPE_STRING) {
      value.texts.push_back(in_.text(key.c_str()));
      return;
    }
    const std::size_t size = scalar_size(value.type);
    if (size == 0) fail(fmt::format("key {} has the unknown type {}", key, value.type));
    value.data = in_.need(size, key.c_str());
    check_bools(key, value.type, value.data, 1);
  }

  void array(const std::string& key, Value& value) {
    value.element = in_.take<std::uint32_t>("an array's type");
    value.count = in_.take<std::uint64_t>("an array's length");
    if (value.element == GGUF_TYPE_STRING) {
      if (value.count > (in_.size() - in_.at()) / 8)
        fail(fmt::format("array {} claims {} strings, more than the file can hold", key, value.count));
      value.texts.reserve(static_cast<std::size_t>(value.count));
      for (std::uint64_t i = 0; i < value.count; ++i) value.texts.push_back(in_.text(key.c_str()));
      return;
    }
    const std::size_t size = scalar_size(value.element);
    if (size == 0) fail(fmt::format("array {} has elements of the unsupported type {}", key, value.element));
    if (value.count > in_.size() / size)
      fail(fmt::format("array {} claims {} elements, more than the file can hold", key, value.count));
    value.data = in_.need(value.count * size, key.c_str());
    check_bools(key, value.element, value.data, value.count);
  }

  void check_bools(const std::string& key, std::uint32_t type, const std::byte* data, std::uint64_t count) const {
    if (type != GGUF_TYPE_BOOL) return;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (std::to_integer<int>(data[i]) > 1)
        fail(fmt::format("key {} holds {}, expected true or false", key, std::to_integer<int>(data[i])));
    }
  }

  void alignment(const Value& value) {
    if (value.type != GGUF_TYPE_UINT32) fail("key general.alignment is not a 32-bit number");
    std::memcpy(&alignment_, value.data, sizeof(alignment_));
    if (!std::has_single_bit(alignment_))
      fail(fmt::format("general.alignment is {}, expected a power of 2", alignment_));
  }

  void tensor() {
    const std::string name(in_.text("a tensor's name"));
    if (name.empty() || name.size() > kMaxName || name.find('\0') != std::string::npos) {
      fail(fmt::format("a tensor's name has {} bytes, expected 1 to {} and none of them zero", name.size(), kMaxName));
    }
    if (!tensor_names_.insert(name).second) fail(fmt::format("tensor {} is there twice", name));
    const auto dims = in_.take<std::uint32_t>("a tensor's dimensions");
    if (dims < 1 || dims > GGML_MAX_DIMS)
      fail(fmt::format("tensor {} has {} dimensions, expected 1 to {}", name, dims, GGML_MAX_DIMS));
    std::array<std::int64_t, GGML_MAX_DIMS> shape{1, 1, 1, 1};
    std::uint64_t elements = 1;
    for (std::uint32_t i = 0; i < dims; ++i) {
      shape.at(i) = in_.take<std::int64_t>("a tensor's shape");
      if (shape.at(i) < 1 || static_cast<std::uint64_t>(shape.at(i)) > kMostElements / elements) {
        fail(fmt::format("tensor {} has a dimension of {}, expected 1 to {}", name, shape.at(i),
                         kMostElements / elements));
      }
      elements *= static_cast<std::uint64_t>(shape.at(i));
    }
    const auto type = in_.take<std::uint32_t>("a tensor's type");
    const auto offset = in_.take<std::uint64_t>("a tensor's offset");
    place(name, shape[0], elements, type, offset);
  }

  void place(const std::string& name, std::int64_t row, std::uint64_t elements, std::uint32_t type,
             std::uint64_t offset) {
    const auto* const traits = type < GGML_TYPE_COUNT ? ggml_get_type_traits(static_cast<ggml_type>(type)) : nullptr;
    if (traits == nullptr || traits->blck_size == 0 || traits->type_size == 0)
      fail(fmt::format("tensor {} has the unknown type {}", name, type));
    if (row % traits->blck_size != 0) {
      fail(fmt::format("tensor {} has rows of {} values, expected a multiple of {} for {}", name, row,
                       traits->blck_size, traits->type_name));
    }
    const std::uint64_t bytes = elements / static_cast<std::uint64_t>(traits->blck_size) * traits->type_size;
    if (offset % alignment_ != 0)
      fail(fmt::format("tensor {} lies at {}, which is not a multiple of the alignment {}", name, offset, alignment_));
    if (offset != next_)
      fail(fmt::format("tensor {} lies at {}, expected {} (right after the one before it)", name, offset, next_));
    next_ = offset + (bytes + alignment_ - 1) / alignment_ * alignment_;
    end_ = offset + bytes;
  }

  void places() const {
    const std::uint64_t begin = (in_.at() + alignment_ - 1) / alignment_ * alignment_;
    if (tensors_ > 0 && begin + end_ > in_.size()) {
      fail(fmt::format("truncated: the tensors end at byte {}, the file has {}", begin + end_, in_.size()));
    }
  }

  /// More than any tensor has; block sizes and type sizes cannot overflow below it.
  static constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48U;

  Cursor in_;
  const std::string& path_;
  std::uint64_t tensors_ = 0;
  std::uint64_t keys_ = 0;
  std::uint32_t alignment_ = 32;
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> tensor_names_;
  VocabularyKeys vocabulary_;
};

}  // namespace

void check_gguf(std::span<const std::byte> file, const std::string& path) { Check(file, path).run(); }

}  // namespace winnow::model
