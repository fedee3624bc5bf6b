// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/device/gathered_rows.h"
#include "attention/device/work_space.h"
#include "cache/scratch.h"
#include "device/device.h"

namespace winnow::attention::device {

/// A scratch's keys and values in a device's memory, in the layout of the scratch.
class ScratchRows final : public cache::ScratchCopy {
 public:
  /// The copy of a scratch, which is made if there is none, with its first `rows` rows up to date. Throws MemoryError.
  static ScratchRows& of(const cache::LayerScratch& scratch, winnow::device::Device& device, int rows);
  /// Bytes of such a copy.
  static std::size_t bytes(const cache::LayerScratch& scratch) { return 2 * scratch.key_bytes(); }

  /// Addresses of [H_kv][capacity][d] keys and values.
  const void* keys() const { return memory_.at(0); }
  const void* values() const { return memory_.at(values_); }

  /// Runs that store new rows, which are in the device's memory, from row `first` on: keys and values of each head.
  std::vector<winnow::device::StoredRun> runs(const cache::LayerScratch& scratch, const NewRows& rows, int first) const;

 private:
  void read(const cache::LayerScratch& scratch, int first) override;
  bool read(const cache::LayerScratch& scratch, std::span<const std::vector<std::int32_t>> rows) override;
  bool products(const cache::LayerScratch& scratch, const cache::RowProducts& what, std::span<double> out) override;
  ScratchRows(const cache::LayerScratch& scratch, winnow::device::Device& device);
  void update(const cache::LayerScratch& scratch, int end);
  /// Offset of a head's row in the keys, and in the values.
  static std::size_t place(const cache::LayerScratch& scratch, int head, int row);

  winnow::device::Device& device_;
  std::size_t values_;  ///< offset
  winnow::device::DeviceMemory memory_;
  GatheredRows gathered_;
  WorkSpace work_;
};

}  // namespace winnow::attention::device
