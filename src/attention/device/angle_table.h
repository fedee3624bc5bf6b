// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "attention/rotation.h"
#include "device/device.h"

namespace winnow::attention::device {

/// A table of rotations in a device's memory.
class AngleTable {
 public:
  AngleTable(MemoryAccount& account, const Rope& rope) : table_(account, rope) {}

  const Rope& rope() const { return table_.rope(); }
  /// Angles of positions whose magnitudes are below `end`. Throws MemoryError.
  winnow::device::Angles up_to(std::int32_t end, winnow::device::Device& device);

 private:
  RotationTable table_;
  std::int32_t copied_ = 0;  ///< positions below it are on the device
  winnow::device::DeviceMemory coarse_;
  winnow::device::DeviceMemory fine_;
};

}  // namespace winnow::attention::device
