// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "winnow/session.h"

namespace winnow::engine {

/// What a compressed text depends on, within one session.
struct PrefixKey {
  std::string options;  ///< cache options in full
  std::string salt;     ///< whose it is
  std::vector<Token> text;

  auto operator<=>(const PrefixKey&) const = default;
};

PrefixKey prefix_key(const CacheOptions& options, const std::string& salt, std::span<const Token> text);

/// Texts that have been read and compressed, for requests that begin with the same one. They are never changed. When
/// there is no room for another one, those that have not been used for the longest time are dropped.
class Prefixes {
 public:
  struct Entry {
    Cache cache;
    std::vector<float> logits;  ///< [n_vocab] of the text's last token
  };

  explicit Prefixes(std::size_t memory) : memory_(memory) {}

  /// Whether a text of so many bytes can be stored at all.
  bool has_room(std::size_t bytes) const { return bytes <= memory_; }
  /// Null: there is none. What it returns is valid until the next put().
  const Entry* find(const PrefixKey& key);
  bool has(const PrefixKey& key) const { return entries_.contains(key); }
  /// Stores a copy, where there is memory for it.
  void put(const PrefixKey& key, const Cache& cache, std::span<const float> logits);

  int entries() const { return static_cast<int>(entries_.size()); }
  std::size_t held() const { return held_; }

 private:
  struct Stored {
    Entry entry;
    std::size_t bytes;
    std::uint64_t used;
  };
  void make_room(std::size_t bytes);

  std::size_t memory_;
  std::size_t held_ = 0;
  std::uint64_t uses_ = 0;
  std::map<PrefixKey, Stored> entries_;
};

}  // namespace winnow::engine
