// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gguf.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace winnow::model {

struct GgufFree {
  void operator()(gguf_context* gguf) const { gguf_free(gguf); }
};
using GgufPtr = std::unique_ptr<gguf_context, GgufFree>;

/// Typed reads of a GGUF's keys: absent keys give nothing, keys of a wrong type a ModelError that names the file and
/// both types. Remembers which keys were asked for.
class GgufKeys {
 public:
  GgufKeys(const gguf_context* gguf, std::string path) : gguf_(gguf), path_(std::move(path)) {}

  std::optional<std::string> text(const std::string& key) const;
  std::optional<bool> flag(const std::string& key) const;
  /// Any integer type.
  std::optional<std::int64_t> integer(const std::string& key) const;
  /// The same, but where the key is there it must lie in [least, most].
  std::optional<int> integer(const std::string& key, int least, int most) const;
  std::optional<double> number(const std::string& key) const;
  /// The same, but where the key is there it must lie in [least, most].
  std::optional<double> number(const std::string& key, double least, double most) const;
  /// Length of an array; nothing when absent.
  std::optional<std::int64_t> array_length(const std::string& key) const;
  /// The same as integer(), but the key must be there and lie in [least, most].
  int required(const std::string& key, int least, int most) const;
  /// One for each layer: an array has as many, a single number is that of all. Each must lie in [least, most].
  std::optional<std::vector<int>> integers(const std::string& key, int layers, int least, int most) const;
  std::optional<std::vector<double>> numbers(const std::string& key, int layers, double least, double most) const;

  /// Whether a key is an array.
  bool is_array(const std::string& key) const;

  /// Keys that begin with `prefix` and that nobody has asked for, unless they are 0, false or empty: such a key turns
  /// nothing on.
  std::vector<std::string> unasked(const std::string& prefix) const;

  const std::string& path() const { return path_; }

 private:
  /// Negative: there is no such key.
  std::int64_t find(const std::string& key) const;
  [[noreturn]] void wrong_type(const std::string& key, std::int64_t id, const char* expected) const;
  /// Which key is an array for so many layers; negative: none. Throws ModelError when it has another length.
  std::int64_t array_of_layers(const std::string& key, int layers) const;

  const gguf_context* gguf_;
  std::string path_;
  mutable std::set<std::string> asked_;
};

}  // namespace winnow::model
