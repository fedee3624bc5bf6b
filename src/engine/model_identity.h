// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/as_size.h"
#include "base/byte_stream.h"
#include "model/hparams.h"
#include "winnow/model.h"

namespace winnow::engine {

/// Heads of one layer, as files store them.
struct SavedHeads {
  std::int32_t kv_heads = 0;
  std::int32_t group = 0;  ///< query heads of a KV head
  std::int32_t head_dim = 0;
  std::int32_t window = 0;  ///< number of keys that a query sees; 0: all

  bool operator==(const SavedHeads&) const = default;
};

/// Identity of a model, to tell it from others.
struct ModelIdentity {
  std::string name;
  std::string arch;
  std::uint64_t file = 0;         ///< hash of its bytes
  std::uint64_t rope = 0;         ///< hash of the RoPE frequencies; options can change them
  std::int32_t layers = 0;        ///< layers with keys and values
  std::vector<SavedHeads> heads;  ///< [layer], or a single one if all layers are equal
  std::int32_t vocabulary = 0;

  const SavedHeads& of_layer(int layer) const { return heads[heads.size() == 1 ? 0 : as_size(layer)]; }
  /// The first layer without a window, or layer 0 if all have one.
  int first_global() const;
  /// True if statistics of entries include this layer. Layers with windows are left out, unless all have one.
  bool counts(int layer) const { return of_layer(first_global()).window > 0 || of_layer(layer).window == 0; }
  void write(ByteSink& to) const;
  /// Throws InputError for data that cannot be a model's.
  static ModelIdentity read(ByteCursor& from);
  bool operator==(const ModelIdentity&) const = default;
};

ModelIdentity identity_of(const model::Hparams& hparams, std::uint64_t file_hash);
ModelIdentity identity_of(const Model& model);

/// Checks that data saved with one model belongs to this one. Throws InputError that begins with `what`.
void check_model(const ModelIdentity& saved, const ModelIdentity& model, const std::string& what);

}  // namespace winnow::engine
