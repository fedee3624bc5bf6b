// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "cache/past_rows.h"
#include "engine/sequence.h"
#include "engine/window_lanes.h"

namespace winnow::engine {

/// Size of the text before a prompt, in the layer where the prompt reads the most of it.
struct PastSize {
  int tokens = 0;
  int rows = 0;           ///< of a KV head
  std::size_t bytes = 0;  ///< of all heads, in the scratch
};

/// Size of a text of so many tokens, of which a layer has so many rows in all its heads.
PastSize past_size(ElementType type, const model::Hparams& hparams, int tokens, std::size_t rows);

/// The text that a prompt comes after: of a sequence, the entries that stand before a position.
class Past {
 public:
  /// Both outlive it. `windows`: of layers with windows, these lanes instead; null: the sequence's own.
  Past(const Sequence& sequence, int tokens, const WindowLanes* windows = nullptr)
      : sequence_(sequence), tokens_(tokens), windows_(windows) {}

  /// The position of the prompt's first token.
  int tokens() const { return tokens_; }
  /// Gives what a prompt reads of them in a layer. Throws MemoryError.
  void read(int layer, cache::PastRows& out) const;
  /// In a scratch of this type.
  PastSize size(ElementType type) const;

 private:
  const cache::LayerLanes& lanes(int layer) const;
  /// The part of a lane that the prompt reads.
  std::vector<cache::LanePiece> pieces(int layer, int head) const;
  /// Entries of these.
  int rows(int layer, int head) const;

  const Sequence& sequence_;
  int tokens_;
  const WindowLanes* windows_;
};

}  // namespace winnow::engine
