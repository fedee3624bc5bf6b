// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cache/scratch.h"
#include "device/device.h"

namespace winnow::attention::device {

/// A scratch's keys and values in a device's memory, in the layout of the scratch.
class ScratchRows final : public cache::ScratchCopy {
 public:
  /// The copy of a scratch, which is made if there is none, with all rows up to date. Throws MemoryError.
  static const ScratchRows& of(const cache::LayerScratch& scratch, winnow::device::Device& device);
  /// Bytes of such a copy.
  static std::size_t bytes(const cache::LayerScratch& scratch) { return 2 * scratch.key_bytes(); }

  /// Addresses of [H_kv][capacity][d] keys and values.
  const void* keys() const { return memory_.at(0); }
  const void* values() const { return memory_.at(values_); }

 private:
  ScratchRows(const cache::LayerScratch& scratch, winnow::device::Device& device);
  void update(const cache::LayerScratch& scratch);

  std::size_t values_;  ///< offset
  winnow::device::DeviceMemory memory_;
};

}  // namespace winnow::attention::device
