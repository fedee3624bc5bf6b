// SPDX-License-Identifier: Apache-2.0
#include "engine/text_room.h"

#include "base/log.h"
#include "winnow/error.h"

namespace winnow::engine {

bool TextRoom::reserve(std::size_t bytes, const std::function<void()>& make) {
  if (!store_.reserve(bytes)) return false;
  bytes_ += bytes;
  try {
    make();
    return true;
  } catch (const MemoryError& error) {
    log().info("a text is not stored whole: {}", error.what());
  }
  release(bytes);
  return false;
}

void TextRoom::release(std::size_t bytes) {
  bytes_ -= bytes;
  store_.release(bytes);
}

}  // namespace winnow::engine
