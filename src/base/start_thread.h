// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/fmt/fmt.h>

#include <string>
#include <system_error>

#include "winnow/error.h"

namespace winnow {

/// Returns what `start` does, which starts a thread. Throws MemoryError, which says what the thread was for, where the
/// system has no room for another one.
template <class Start>
auto start_thread(const std::string& purpose, const Start& start) {
  try {
    return start();
  } catch (const std::system_error& error) {
    throw MemoryError(fmt::format("cannot start a thread for {}: {}", purpose, error.code().message()), 0);
  }
}

}  // namespace winnow
