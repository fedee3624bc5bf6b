// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace winnow::device {

/// Outcome of work that a device was asked for.
enum class OnDevice : std::uint8_t {
  not_done,    ///< the host has to do it
  done,        ///< in the device's memory
  not_finite,  ///< the same, and a value that was read is not a finite number
};

}  // namespace winnow::device
