// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text_store.h"
#include "winnow/session.h"

namespace winnow::engine {

/// Key of a compressed text within one session.
struct Prefix {
  std::string_view owner;             ///< result of owner_of()
  std::span<const std::size_t> ends;  ///< ends of its stages; the last one is the end of the text
  std::span<const Token> text;
};

/// Owner of stored texts: requests with the same options, salt and length of the question. `asked`: as
/// RequestText::asked.
std::string owner_of(const CacheOptions& options, std::size_t asked, const std::string& salt);

bool operator==(const Prefix& a, const Prefix& b);
bool operator<(const Prefix& a, const Prefix& b);

/// Cache of compressed texts, for requests that begin with the same text. Entries never change. They use the memory of
/// a text store, at most half of it: they are small, so blocks of the store are dropped for them, but never the other
/// way round. The least recently used entries are dropped when there is no room.
class Prefixes {
 public:
  struct Entry {
    Cache cache;
    std::vector<float> logits;  ///< [n_vocab] of the text's last token
  };

  /// Keeps a reference to the store.
  explicit Prefixes(TextStore& texts) : texts_(texts) {}

  /// True if a text of `bytes` bytes can be stored at all.
  bool has_room(std::size_t bytes) const { return bytes <= most(); }
  /// Returns null if there is none. The result is valid until the next put().
  const Entry* find(const Prefix& prefix);
  bool has(const Prefix& prefix) const { return entries_.contains(prefix); }
  /// Stores a copy if there is memory for it.
  void put(const Prefix& prefix, const Cache& cache, std::span<const float> logits);

  /// Changes whenever the set of stored texts changes.
  std::uint64_t generation() const { return generation_; }
  int entries() const { return static_cast<int>(entries_.size()); }
  std::size_t held() const { return held_; }

 private:
  struct Key {
    std::string owner;
    std::vector<std::size_t> ends;
    std::vector<Token> text;

    explicit Key(const Prefix& prefix)
        : owner(prefix.owner),
          ends(prefix.ends.begin(), prefix.ends.end()),
          text(prefix.text.begin(), prefix.text.end()) {}
    Prefix view() const { return {owner, ends, text}; }
  };
  /// Comparison of keys without copies of their texts.
  struct Less {
    using is_transparent = void;
    static const Prefix& view(const Prefix& prefix) { return prefix; }
    static Prefix view(const Key& key) { return key.view(); }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return view(a) < view(b);
    }
  };
  struct Stored {
    Entry entry;
    std::size_t bytes;
    std::uint64_t used;
  };
  /// The most bytes of all entries.
  std::size_t most() const { return texts_.memory() / 2; }
  /// Reserves bytes for an entry; false if there are too many.
  bool reserve(std::size_t bytes);
  void drop_oldest();

  TextStore& texts_;
  std::size_t held_ = 0;
  std::uint64_t uses_ = 0;
  std::uint64_t generation_ = 0;
  std::map<Key, Stored, Less> entries_;
};

}  // namespace winnow::engine
