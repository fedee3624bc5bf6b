// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "documents/chosen_tokens.h"
#include "documents/joint.h"
#include "engine/sequence.h"
#include "engine/session_impl.h"

namespace winnow::documents {

/// Numbers of entries over all layers; an entry of all heads counts once.
struct EntryCount {
  std::int64_t kept = 0;
  std::int64_t recomputed = 0;
};

/// Assembles a cache layer by layer. Only one layer's keys and values exist outside of its lanes.
class Assembly {
 public:
  /// `capacity`: the most rows that the scratch needs. Throws MemoryError if its memory is not available.
  Assembly(Session::Impl& session, const Joint& joint, const CacheOptions& options, int capacity,
           KeyPlaces places = KeyPlaces::shifted);

  JointScratch& scratch() { return scratch_; }
  const EntryCount& count() const { return count_; }
  /// Loads a layer, recomputes some of its rows, and stores the result in its lanes. `top` [joint tokens]: the last
  /// layer in which a token is recomputed; in that layer only its keys and values are. `recomputed`: joint positions
  /// that are loaded and recomputed here, ascending. `fused`: those of them that become cos · new + (1 - cos) · old,
  /// keys and values separately, where cos >= 0 is the cosine of new and old over all heads; the others become new.
  void layer(int layer, const TokenRanges& kept, ChosenTokens& chosen, std::span<const std::int32_t> recomputed,
             std::span<const int> top, std::span<const std::int32_t> fused = {});
  /// The same for a layer that is loaded already.
  void loaded_layer(int layer, ChosenTokens& chosen, std::span<const std::int32_t> recomputed, std::span<const int> top,
                    std::span<const std::int32_t> fused = {});
  /// Stores a layer's rows in its lanes without changes.
  void commit(int layer, const cache::KeepPlan& plan = {});
  Cache finish();

 private:
  void stop_some(int layer, ChosenTokens& chosen, std::span<const std::int32_t> recomputed, std::span<const int> top);
  RowPlan plan_rows(int layer, const ChosenTokens& chosen, std::span<const std::int32_t> recomputed);

  Session::Impl& session_;
  const Joint& joint_;
  JointScratch scratch_;
  std::unique_ptr<engine::Sequence> sequence_;
  EntryCount count_;        ///< of each head separately until finish()
  std::int64_t lanes_ = 0;  ///< number of lanes that were filled
};

}  // namespace winnow::documents
