// SPDX-License-Identifier: Apache-2.0
#include "engine/prefixes.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/sequence.h"
#include "winnow/error.h"

namespace winnow::engine {

std::string owner_of(const CacheOptions& options, std::size_t asked, const std::string& salt) {
  const std::string budget = options.budget ? options.budget->print() : "";
  return fmt::format("{} {} {} {} {}", options.spec.print_full(), budget, options.kv_type.print(), asked, salt);
}

bool operator==(const Prefix& a, const Prefix& b) {
  return a.text.size() == b.text.size() && a.owner == b.owner && std::ranges::equal(a.ends, b.ends) &&
         std::ranges::equal(a.text, b.text);
}

/// Compares lengths first, so that texts of different lengths are not compared token by token: a conversation is looked
/// up stage by stage.
bool operator<(const Prefix& a, const Prefix& b) {
  const auto lengths = [](const Prefix& prefix) { return std::pair(prefix.text.size(), prefix.ends.size()); };
  if (lengths(a) != lengths(b)) return lengths(a) < lengths(b);
  if (a.owner != b.owner) return a.owner < b.owner;
  if (!std::ranges::equal(a.ends, b.ends)) return std::ranges::lexicographical_compare(a.ends, b.ends);
  return std::ranges::lexicographical_compare(a.text, b.text);
}

const Prefixes::Entry* Prefixes::find(const Prefix& prefix) {
  const auto found = entries_.find(prefix);
  if (found == entries_.end()) return nullptr;
  found->second.used = ++uses_;
  return &found->second.entry;
}

void Prefixes::put(const Prefix& prefix, const Cache& cache, std::span<const float> logits) {
  const std::size_t key = prefix.owner.size() + prefix.ends.size_bytes() + prefix.text.size_bytes();
  const std::size_t bytes = cache.impl().bytes_held() + logits.size_bytes() + key;
  if (has(prefix) || !reserve(bytes)) return;
  try {
    entries_.emplace(prefix, Stored{{cache.clone(), {logits.begin(), logits.end()}}, bytes, ++uses_});
  } catch (const MemoryError& error) {
    texts_.release(bytes);
    return log().info("a text of {} tokens is not stored for later requests: {}", prefix.text.size(), error.what());
  }
  held_ += bytes;
  ++generation_;
}

bool Prefixes::reserve(std::size_t bytes) {
  if (!has_room(bytes)) return false;
  while (held_ + bytes > most() || !texts_.reserve(bytes)) {
    if (entries_.empty()) return false;
    drop_oldest();
  }
  return true;
}

void Prefixes::drop_oldest() {
  const auto oldest = std::min_element(entries_.begin(), entries_.end(),
                                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  held_ -= oldest->second.bytes;
  texts_.release(oldest->second.bytes);
  entries_.erase(oldest);
  ++generation_;
}

}  // namespace winnow::engine
