// SPDX-License-Identifier: Apache-2.0
#include "engine/prefixes.h"

#include <algorithm>

#include "base/log.h"
#include "engine/sequence.h"
#include "winnow/error.h"

namespace winnow::engine {

PrefixKey prefix_key(const CacheOptions& options, const std::string& salt, std::span<const Token> text) {
  const std::string budget = options.budget ? options.budget->print() : "";
  return {options.spec.print_full() + " " + budget + " " + options.kv_type.print(), salt, {text.begin(), text.end()}};
}

const Prefixes::Entry* Prefixes::find(const PrefixKey& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  found->second.used = ++uses_;
  return &found->second.entry;
}

void Prefixes::put(const PrefixKey& key, const Cache& cache, std::span<const float> logits) {
  const std::size_t bytes = cache.impl().bytes_held() + logits.size_bytes() + key.text.size() * sizeof(Token);
  if (bytes > memory_ || has(key)) return;
  make_room(bytes);
  try {
    entries_.emplace(key, Stored{{cache.clone(), {logits.begin(), logits.end()}}, bytes, ++uses_});
  } catch (const MemoryError& error) {
    return log().info("a text of {} tokens is not stored for later requests: {}", key.text.size(), error.what());
  }
  held_ += bytes;
}

void Prefixes::make_room(std::size_t bytes) {
  while (held_ + bytes > memory_) {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                         [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    held_ -= oldest->second.bytes;
    entries_.erase(oldest);
  }
}

}  // namespace winnow::engine
