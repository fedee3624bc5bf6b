// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_check.h"

#include <ggml.h>
#include <gguf.h>
#include <spdlog/fmt/fmt.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "base/printable.h"
#include "model/architecture.h"
#include "model/vocab_check.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

constexpr std::uint64_t kMaxName = 63;  // ggml keeps tensor names in 64 bytes

/// More elements than any tensor has; below this, block and type sizes cannot overflow.
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48U;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// The first of a key's numbers of type T that satisfies `is_bad`; null: none.
template <class T, class IsBad>
const T* find_number(const Value& value, IsBad is_bad, T& out) {
  for (std::uint64_t i = 0; i < value.count; ++i) {
    std::memcpy(&out, value.data + i * sizeof(T), sizeof(T));
    if (is_bad(out)) return &out;
  }
  return nullptr;
}

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw ModelError(fmt::format("{}: {}", path, what));
}

/// Checks the header of any GGUF.
class GgufCheck {
 public:
  GgufCheck(const GgufHeader& header, std::uint64_t file_bytes, const std::string& path)
      : header_(header), file_bytes_(file_bytes), path_(path) {}

  void run() {
    for (const auto& [name, value] : header_.keys) key(name, value);
    begin_ = round_up(header_.bytes, alignment_);
    for (const auto& entry : header_.tensors) tensor(entry);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { model::fail(path_, what); }

  void key(std::string_view name, const Value& value) {
    if (name.empty()) fail("a key has no name");
    if (name.find('\0') != std::string_view::npos) fail(fmt::format("key {} has a zero byte in its name", brief(name)));
    if (!names_.insert(name).second) fail(fmt::format("key {} occurs twice", brief(name)));
    bools(name, value);
    if (name == "general.alignment") alignment(value);
  }

  void bools(std::string_view name, const Value& value) const {
    if (value.type != GGUF_TYPE_BOOL && value.element != GGUF_TYPE_BOOL) return;
    std::uint8_t found = 0;
    if (find_number<std::uint8_t>(
            value, [](std::uint8_t x) { return x > 1; }, found) != nullptr)
      fail(fmt::format("key {} holds {}, expected true or false", brief(name), found));
  }

  void alignment(const Value& value) {
    if (value.type != GGUF_TYPE_UINT32) fail("key general.alignment is not a 32-bit number");
    std::memcpy(&alignment_, value.data, sizeof(alignment_));
    if (!std::has_single_bit(alignment_))
      fail(fmt::format("general.alignment is {}, expected a power of 2", alignment_));
  }

  void tensor(const TensorEntry& entry) {
    const std::string name = brief(entry.name);
    if (entry.name.empty() || entry.name.size() > kMaxName || entry.name.find('\0') != std::string_view::npos) {
      fail(fmt::format("a tensor's name '{}' has {} bytes, expected 1 to {} and none of them zero", name,
                       entry.name.size(), kMaxName));
    }
    if (!tensor_names_.insert(entry.name).second) fail(fmt::format("tensor {} occurs twice", name));
    std::uint64_t elements = 1;
    for (const std::int64_t n : entry.shape) {
      if (n < 1 || static_cast<std::uint64_t>(n) > kMostElements / elements)
        fail(fmt::format("tensor {} has a dimension of {}, expected 1 to {}", name, n, kMostElements / elements));
      elements *= static_cast<std::uint64_t>(n);
    }
    place(name, entry, elements);
  }

  void place(const std::string& name, const TensorEntry& entry, std::uint64_t elements) {
    const auto* const traits =
        entry.type < GGML_TYPE_COUNT ? ggml_get_type_traits(static_cast<ggml_type>(entry.type)) : nullptr;
    if (traits == nullptr || traits->blck_size == 0 || traits->type_size == 0)
      fail(fmt::format("tensor {} has the unknown type {}", name, entry.type));
    if (entry.shape[0] % traits->blck_size != 0) {
      fail(fmt::format("tensor {} has rows of {} values, expected a multiple of {} for {}", name, entry.shape[0],
                       traits->blck_size, traits->type_name));
    }
    if (entry.offset % alignment_ != 0)
      fail(fmt::format("tensor {} begins at {}, which is not a multiple of the alignment {}", name, entry.offset,
                       alignment_));
    if (entry.offset != next_)
      fail(fmt::format("tensor {} begins at {}, expected {} (right after the one before it)", name, entry.offset,
                       next_));
    const std::uint64_t bytes = elements / static_cast<std::uint64_t>(traits->blck_size) * traits->type_size;
    // The tensors before it end within the file, so nothing here overflows.
    const std::uint64_t end = begin_ + next_ + bytes;
    if (end > file_bytes_)
      fail(fmt::format("truncated: tensor {} ends at byte {}, but the file has {} bytes", name, end, file_bytes_));
    next_ = round_up(next_ + bytes, alignment_);
  }

  const GgufHeader& header_;
  std::uint64_t file_bytes_;
  const std::string& path_;
  std::uint32_t alignment_ = 32;
  std::uint64_t begin_ = 0;  ///< first tensor in the file
  std::uint64_t next_ = 0;   ///< next tensor, from begin_
  std::unordered_set<std::string_view> names_;
  std::unordered_set<std::string_view> tensor_names_;
};

/// The text of a key; empty: missing.
std::string text_of(const GgufHeader& header, std::string_view name, const std::string& path) {
  if (header.find(name) != nullptr && !header.text(name)) fail(path, fmt::format("key {} is not a string", name));
  return std::string(header.text(name).value_or(""));
}

template <class T>
void check_finite(std::string_view name, const Value& value, std::uint32_t type, const std::string& path) {
  if (value.type != type && !(value.type == GGUF_TYPE_ARRAY && value.element == type)) return;
  T found = 0;
  if (find_number<T>(
          value, [](T x) { return !std::isfinite(x); }, found) != nullptr)
    fail(path, fmt::format("key {} is {}, expected a finite number", brief(name), found));
}

}  // namespace

void check_gguf(const GgufHeader& header, std::uint64_t file_bytes, const std::string& path) {
  GgufCheck(header, file_bytes, path).run();
}

void check_model_keys(const GgufHeader& header, const std::string& path) {
  const std::string architecture = text_of(header, "general.architecture", path);
  check_kind(architecture, text_of(header, "general.type", path), path);
  VocabularyKeys vocabulary;
  for (const auto& [name, value] : header.keys) {
    if (name.starts_with("tokenizer.")) vocabulary.add(std::string(name), value, path);
    // All floats among an architecture's keys enter sums and products.
    if (!name.starts_with(architecture + ".")) continue;
    check_finite<float>(name, value, GGUF_TYPE_FLOAT32, path);
    check_finite<double>(name, value, GGUF_TYPE_FLOAT64, path);
  }
  vocabulary.check(path);
}

}  // namespace winnow::model
