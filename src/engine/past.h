// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "cache/past_rows.h"
#include "engine/sequence.h"
#include "engine/window_lanes.h"

namespace winnow::engine {

/// Size of the text before a prompt, in the layer where the prompt reads most of it.
struct PastSize {
  int tokens = 0;
  int rows = 0;           ///< entries of a KV head
  std::size_t bytes = 0;  ///< of the entries of all heads, in the scratch
};

/// Size of a text of `tokens` tokens that keeps `rows` entries in all heads of a layer.
PastSize past_size(ElementType type, const model::Hparams& hparams, int tokens, std::size_t rows);

/// The text before a prompt: the entries of a sequence before a position.
class Past {
 public:
  /// Arguments outlive it. `windows`: lanes of the layers with windows, to be read instead of the sequence's own; may
  /// be null.
  Past(const Sequence& sequence, int tokens, const WindowLanes* windows = nullptr)
      : sequence_(sequence), tokens_(tokens), windows_(windows) {}

  /// The position of the prompt's first token.
  int tokens() const { return tokens_; }
  /// Reads the entries that a prompt needs in a layer. Throws MemoryError.
  void read(int layer, cache::PastRows& out) const;
  /// Size in a scratch of this type.
  PastSize size(ElementType type) const;

 private:
  const cache::LayerLanes& lanes(int layer) const;
  /// The runs of a lane that the prompt reads.
  std::vector<cache::LaneRun> runs(int layer, int head) const;
  /// Number of entries that the prompt reads.
  int rows(int layer, int head) const;

  const Sequence& sequence_;
  int tokens_;
  const WindowLanes* windows_;
};

}  // namespace winnow::engine
