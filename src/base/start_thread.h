// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/fmt/fmt.h>

#include <string>
#include <system_error>

#include "winnow/error.h"

namespace winnow {

/// Returns start(), which starts a thread. Throws MemoryError, with the thread's purpose, if the system cannot start
/// another one.
template <class Start>
auto start_thread(const std::string& purpose, const Start& start) {
  try {
    return start();
  } catch (const std::system_error& error) {
    throw MemoryError(fmt::format("cannot start a thread for {}: {}", purpose, error.code().message()), 0);
  }
}

}  // namespace winnow
