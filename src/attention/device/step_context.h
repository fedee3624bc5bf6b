// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "attention/device/angle_table.h"
#include "attention/device/kernel_gate.h"
#include "attention/device/lane_rows.h"
#include "device/device.h"

namespace winnow::attention::device {

/// State that all steps of a session share.
class StepContext {
 public:
  /// REQUIRES: the device has kernels and outlives this object.
  StepContext(winnow::device::Device& of, MemoryAccount& account)
      : device(of), gate(of, "attention of decode steps"), account_(account) {}

  /// Rotations by positions whose magnitudes are below `end`, valid until the next call for the same Rope. Throws
  /// MemoryError.
  winnow::device::Angles angles(const Rope& rope, std::int32_t end);

  winnow::device::Device& device;
  KernelGate gate;
  std::shared_ptr<CopiedLanes> copied = std::make_shared<CopiedLanes>();

 private:
  MemoryAccount& account_;
  std::vector<std::unique_ptr<AngleTable>> angles_;  ///< layers share a Rope, so there are few
};

}  // namespace winnow::attention::device
