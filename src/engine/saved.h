// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/as_size.h"
#include "base/byte_stream.h"
#include "cache/sections.h"
#include "engine/cache_impl.h"
#include "winnow/model.h"
#include "winnow/session.h"

/// One sequence in a file: docs/file-formats.md.
namespace winnow::engine {

inline constexpr cache::FileFormat kSavedFormat{{'w', 'i', 'n', 'n', 'o', 'w', 'k', 'v'}, 2, "a saved cache"};

/// Heads of one layer, as files have them.
struct SavedHeads {
  std::int32_t kv_heads = 0;
  std::int32_t group = 0;  ///< query heads of a KV head
  std::int32_t head_dim = 0;

  bool operator==(const SavedHeads&) const = default;
};

/// What tells a model from others.
struct ModelIdentity {
  std::string name;
  std::string arch;
  std::uint64_t file = 0;  ///< hash of its bytes
  std::uint64_t rope = 0;  ///< hash of the RoPE frequencies, which options can change
  std::int32_t layers = 0;
  std::vector<SavedHeads> heads;  ///< [layer], or one for all layers where they are equal
  std::int32_t vocabulary = 0;

  const SavedHeads& of_layer(int layer) const { return heads[heads.size() == 1 ? 0 : as_size(layer)]; }
  bool operator==(const ModelIdentity&) const = default;
};

ModelIdentity identity_of(const model::Hparams& hparams, std::uint64_t file_hash);

/// That what was saved with a model is for this one. Throws InputError that begins with `what`.
void check_model(const ModelIdentity& saved, const ModelIdentity& model, const std::string& what);

/// All of a saved sequence but its lanes and logits.
struct SavedHead {
  CacheOptions options;
  std::string spec_full;  ///< as the writer understood the spec
  ModelIdentity model;
  std::int32_t seen = 0;
  policy::Terms terms;                  ///< of the first layer, from which those of the others follow
  std::vector<std::vector<int>> limit;  ///< [layer][KV head]
  Transcript transcript;

  void write(ByteSink& to) const;
  /// Throws InputError for what cannot be; whether it fits a model is another question.
  static SavedHead read(ByteCursor& from, int sections);
};

/// Sections of a file: the head, each layer, the logits.
inline int layer_section(int layer) { return layer + 1; }

/// Writes a sequence. Throws what the sink throws.
void write_sequence(ByteSink& to, const Cache::Impl& cache, const ModelIdentity& model, std::span<const float> logits,
                    const Transcript& transcript);

/// Reads a sequence for a model. Throws InputError when it is damaged or another model's, MemoryError; nothing that
/// would let a later step read or write outside of a lane is let through.
Restored read_sequence(const ByteSource& from, const ModelIdentity& model, const model::Hparams& hparams,
                       MemoryAccount& account);

}  // namespace winnow::engine
