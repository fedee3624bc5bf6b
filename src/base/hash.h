// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace winnow {

/// 64-bit XXH3 over bytes that arrive in chunks. Detects accidents, not forgeries.
class Hasher {
 public:
  explicit Hasher(std::uint64_t seed = 0);
  Hasher(Hasher&&) noexcept;
  ~Hasher();

  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Hash of contiguous bytes.
std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace winnow
