// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

#include "engine/text_store.h"

namespace winnow::engine {

/// Memory reserved in a text store for blocks and facts until they are stored.
class TextRoom {
 public:
  /// The store outlives it.
  explicit TextRoom(TextStore& store) : store_(store) {}
  TextRoom(const TextRoom&) = delete;
  TextRoom& operator=(const TextRoom&) = delete;
  ~TextRoom() { store_.release(bytes_); }

  /// Reserves bytes for make(), which makes something to be stored. Returns false if there is no room for it, in the
  /// store or in the machine.
  bool reserve(
      std::size_t bytes, const std::function<void()>& make = [] {});
  void release(std::size_t bytes);
  void release() { release(bytes_); }

 private:
  TextStore& store_;
  std::size_t bytes_ = 0;
};

}  // namespace winnow::engine
