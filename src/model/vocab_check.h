#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::model {

/// One key of a GGUF as it lies in the file.
struct Value {
  std::uint32_t type = 0;     ///< gguf_type
  std::uint32_t element = 0;  ///< of an array
  std::uint64_t count = 1;
  const std::byte* data = nullptr;      ///< of numbers
  std::vector<std::string_view> texts;  ///< of strings
};

/// The `tokenizer.` keys, checked for what libllama's vocabulary takes for granted.
class VocabularyKeys {
 public:
  /// Throws ModelError when the key has another type than libllama reads.
  void add(const std::string& key, Value&& value, const std::string& path);
  /// Throws ModelError: no tokens, repeated tokens, lists of different lengths, special tokens that are not there, an
  /// unknown tokenizer.
  void check(const std::string& path) const;

 private:
  const Value* find(const std::string& key) const;

  std::map<std::string, Value> values_;
};

}  // namespace winnow::model
