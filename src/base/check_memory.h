// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <string>

#include "base/format.h"
#include "base/memory.h"
#include "winnow/error.h"

namespace winnow {

/// Throws MemoryError if less memory is available than `what` needs.
inline void check_memory(std::size_t bytes, const std::string& what) {
  if (bytes <= available_memory()) return;
  throw MemoryError(fmt::format("{} needs {}, but only {} are available", what, format_bytes(bytes),
                                format_bytes(available_memory())),
                    bytes);
}

}  // namespace winnow
