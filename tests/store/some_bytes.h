// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "store/byte_store.h"

namespace winnow::test {

inline store::Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Bytes that vary along the array and with the seed.
inline store::Bytes pattern(std::size_t size, int seed) {
  store::Bytes out(size);
  for (std::size_t i = 0; i < size; ++i)
    out[i] = static_cast<std::byte>((i * 2654435761U + static_cast<std::size_t>(seed)) >> 7U);
  return out;
}

inline std::string key_of(int number) { return std::to_string(100'000 + number); }

inline void add(store::ByteStore& to, const std::string& key, const store::Bytes& value) {
  to.change(
      [&](store::Change& change) { change.add_value(key, value.size(), [&](ByteSink& sink) { sink.write(value); }); });
}

}  // namespace winnow::test
