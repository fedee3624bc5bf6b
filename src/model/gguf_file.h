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

/// Typed reads of a GGUF's keys: empty for absent keys, ModelError with the file and both types for keys of a wrong
/// type. Remembers which keys were requested.
class GgufKeys {
 public:
  GgufKeys(const gguf_context* gguf, std::string path) : gguf_(gguf), path_(std::move(path)) {}

  std::optional<std::string> text(const std::string& key) const;
  std::optional<bool> flag(const std::string& key) const;
  /// Accepts any integer type.
  std::optional<std::int64_t> integer(const std::string& key) const;
  /// The same; the value must be in [least, most] if the key is there.
  std::optional<int> integer(const std::string& key, int least, int most) const;
  std::optional<double> number(const std::string& key) const;
  /// The same; the value must be in [least, most] if the key is there.
  std::optional<double> number(const std::string& key, double least, double most) const;
  /// Length of an array; empty if absent.
  std::optional<std::int64_t> array_length(const std::string& key) const;
  /// Like integer(), but the key is required and must be in [least, most].
  int required(const std::string& key, int least, int most) const;
  /// One value per layer: an array of that length, or a single number for all. Each must be in [least, most].
  std::optional<std::vector<int>> integers(const std::string& key, int layers, int least, int most) const;
  std::optional<std::vector<double>> numbers(const std::string& key, int layers, double least, double most) const;

  /// True if the key is an array.
  bool is_array(const std::string& key) const;

  /// Keys that begin with `prefix` and were never requested, unless they are 0, false or empty, which turns nothing on.
  std::vector<std::string> unasked(const std::string& prefix) const;

  const std::string& path() const { return path_; }

 private:
  /// Negative if there is no such key.
  std::int64_t find(const std::string& key) const;
  [[noreturn]] void wrong_type(const std::string& key, std::int64_t id, const char* expected) const;
  /// Index of the key if it is an array; negative if not. Throws ModelError if its length is not `layers`.
  std::int64_t array_of_layers(const std::string& key, int layers) const;

  const gguf_context* gguf_;
  std::string path_;
  mutable std::set<std::string> asked_;
};

}  // namespace winnow::model
