// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/device/work_space.h"
#include "cache/scratch.h"
#include "device/device.h"

namespace winnow::attention::device {

/// Some rows of a scratch's copy, which a kernel puts side by side, so that they are copied to the host together.
class GatheredRows {
 public:
  explicit GatheredRows(winnow::device::Device& device) : device_(device), work_(device) {}

  /// Rows of each head, [H_kv].
  using Rows = std::span<const std::vector<std::int32_t>>;
  /// Copies rows of `keys` and `values`, device addresses in the layout of the scratch, to the scratch. Returns false
  /// if the device lacks memory, or refuses.
  bool copy(const cache::LayerScratch& scratch, const std::byte* keys, const std::byte* values, Rows rows);

 private:
  /// Allocates memory, and sends the numbers of the rows. Throws MemoryError.
  void place(Rows rows);
  void add_runs(const cache::LayerScratch& scratch, const std::byte* from, Rows rows);
  bool gather(const cache::LayerScratch& scratch, Rows rows);
  void scatter(const cache::LayerScratch& scratch, Rows rows) const;

  winnow::device::Device& device_;
  WorkSpace work_;
  std::size_t numbers_ = 0, of_runs_ = 0;  ///< offsets, after the rows
  std::vector<winnow::device::StoredRun> runs_;
  std::vector<std::byte> on_host_;  ///< keys of all heads, then values
};

}  // namespace winnow::attention::device
