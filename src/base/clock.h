// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace winnow {

using Clock = std::chrono::steady_clock;

inline double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

}  // namespace winnow
