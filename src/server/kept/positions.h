// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace winnow::server {

/// Consecutive positions.
struct Run {
  std::int32_t first = 0;
  std::int32_t last = 0;
};

/// Positions that each KV head of each layer keeps of a text. Stored as runs, since neighbours are often kept together.
class KeptPositions {
 public:
  using Layer = std::vector<std::vector<Run>>;  ///< [KV head][run], ascending

  using Positions = std::vector<std::vector<std::vector<std::int32_t>>>;  ///< [layer][KV head], ascending

  /// `positions` are those kept of `seen` tokens.
  KeptPositions(const Positions& positions, int seen);

  const std::vector<Layer>& layers() const { return layers_; }
  int seen() const { return seen_; }
  /// Mean over layers and KV heads.
  double entries_per_head() const { return entries_per_head_; }
  std::size_t bytes() const;

 private:
  std::vector<Layer> layers_;
  int seen_;
  double entries_per_head_ = 0;
};

}  // namespace winnow::server
