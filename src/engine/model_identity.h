// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/as_size.h"
#include "base/byte_stream.h"
#include "model/hparams.h"

namespace winnow::engine {

/// Heads of one layer, as files have them.
struct SavedHeads {
  std::int32_t kv_heads = 0;
  std::int32_t group = 0;  ///< query heads of a KV head
  std::int32_t head_dim = 0;
  std::int32_t window = 0;  ///< keys that a query sees; 0: all

  bool operator==(const SavedHeads&) const = default;
};

/// What tells a model from others.
struct ModelIdentity {
  std::string name;
  std::string arch;
  std::uint64_t file = 0;         ///< hash of its bytes
  std::uint64_t rope = 0;         ///< hash of the RoPE frequencies, which options can change
  std::int32_t layers = 0;        ///< that have keys and values
  std::vector<SavedHeads> heads;  ///< [layer], or one for all layers where they are equal
  std::int32_t vocabulary = 0;

  const SavedHeads& of_layer(int layer) const { return heads[heads.size() == 1 ? 0 : as_size(layer)]; }
  /// The first layer without a window; where all have one, the first.
  int first_global() const;
  /// Whether figures of what is kept are of this layer, too: not where a window says it.
  bool counts(int layer) const { return of_layer(first_global()).window > 0 || of_layer(layer).window == 0; }
  void write(ByteSink& to) const;
  /// Throws InputError for what cannot be a model.
  static ModelIdentity read(ByteCursor& from);
  bool operator==(const ModelIdentity&) const = default;
};

ModelIdentity identity_of(const model::Hparams& hparams, std::uint64_t file_hash);

/// That what was saved with a model is for this one. Throws InputError that begins with `what`.
void check_model(const ModelIdentity& saved, const ModelIdentity& model, const std::string& what);

}  // namespace winnow::engine
