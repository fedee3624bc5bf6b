// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "documents/joint.h"
#include "documents/pass.h"
#include "engine/sequence.h"
#include "engine/session_impl.h"

namespace winnow::documents {

/// Entries over all layers, counted once for all heads.
struct EntryCount {
  std::int64_t kept = 0;
  std::int64_t recomputed = 0;
};

/// A cache that is put together layer by layer: no more than one layer's keys and values lie outside of its lanes.
class Assembly {
 public:
  /// `capacity`: rows that the scratch needs at most. Throws MemoryError when what it will hold cannot be had.
  Assembly(Session::Impl& session, const Joint& joint, const CacheOptions& options, int capacity,
           KeyPlaces places = KeyPlaces::shifted);

  JointScratch& scratch() { return scratch_; }
  const EntryCount& count() const { return count_; }
  /// Loads a layer, lets a pass recompute some of it, and keeps the result. `top` [joint tokens]: the layer after
  /// whose keys and values each token stops. `recomputed`: joint positions that are loaded and on their way, ascending.
  /// `fused`: those of them that become cos · new + (1 - cos) · old, keys and values apart, with the cosine of new and
  /// old over all heads, at least 0; the others become new.
  void layer(int layer, const TokenRanges& kept, Pass& pass, std::span<const std::int32_t> recomputed,
             std::span<const int> top, std::span<const std::int32_t> fused = {});
  /// The same of a layer that is loaded.
  void loaded_layer(int layer, Pass& pass, std::span<const std::int32_t> recomputed, std::span<const int> top,
                    std::span<const std::int32_t> fused = {});
  /// Keeps a layer's rows as they are.
  void commit(int layer, const cache::KeepPlan& plan = {});
  Cache finish();

 private:
  void stop_some(int layer, Pass& pass, std::span<const std::int32_t> recomputed, std::span<const int> top);
  RowPlan plan_rows(int layer, const Pass& pass, std::span<const std::int32_t> recomputed);

  Session::Impl& session_;
  const Joint& joint_;
  JointScratch scratch_;
  std::unique_ptr<engine::Sequence> sequence_;
  EntryCount count_;        ///< of all heads until finish()
  std::int64_t lanes_ = 0;  ///< that were filled
};

}  // namespace winnow::documents
