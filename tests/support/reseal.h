// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/hash.h"

namespace winnow::test {

/// Recomputes the checksums of a file of sections (docs/file-formats.md) after its bytes were changed, so that a test
/// reaches the checks behind the checksums.
inline void reseal(std::span<std::byte> file) {
  constexpr std::size_t kHeader = 32;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (file.size() < kHeader) return;
  const auto set = [&](std::size_t at, std::uint64_t value) { std::memcpy(file.data() + at, &value, kWord); };
  set(16, file.size());
  set(24, hash_of(file.first(24)));
  std::uint64_t index = 0;
  for (std::size_t at = kHeader; file.size() - at >= 2 * kWord; ++index) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + at, kWord);
    if (length > file.size() - at - 2 * kWord) return;
    set(at + kWord + length, hash_of(file.subspan(at, kWord + length), index));
    at += 2 * kWord + length;
  }
}

}  // namespace winnow::test
