// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <xxhash.h>

#include <new>

namespace winnow {

struct Hasher::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh{XXH3_createState()};
};

Hasher::Hasher(std::uint64_t seed) : state_(std::make_unique<State>()) {
  if (state_->xxh == nullptr || XXH3_64bits_reset_withSeed(state_->xxh.get(), seed) != XXH_OK) throw std::bad_alloc();
}

Hasher::Hasher(Hasher&&) noexcept = default;
Hasher::~Hasher() = default;

void Hasher::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->xxh.get(), bytes.data(), bytes.size());
}

std::uint64_t Hasher::value() const { return XXH3_64bits_digest(state_->xxh.get()); }

std::uint64_t hash_of(std::span<const std::byte> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace winnow
