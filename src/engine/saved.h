// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/byte_stream.h"
#include "cache/sections.h"
#include "engine/saved_head.h"
#include "winnow/session.h"

/// A sequence in a file; docs/file-formats.md has the format.
namespace winnow::engine {

inline constexpr cache::FileFormat kSavedFormat{{'w', 'i', 'n', 'n', 'o', 'w', 'k', 'v'}, 2, "a saved cache"};

/// Sections of a file: the head, each layer, the logits.
inline int layer_section(int layer) { return layer + 1; }

/// Writes a sequence. Throws the sink's errors.
void write_sequence(ByteSink& to, const Sequence& sequence, const ModelIdentity& model, std::span<const float> logits,
                    const Transcript& transcript);

/// Reads a sequence for a model. Throws MemoryError, and InputError for a damaged file, one of another model, or one
/// that would make a later step read or write outside of a lane.
Restored read_sequence(const ByteSource& from, const ModelIdentity& model, const model::Hparams& hparams,
                       MemoryAccount& account);

}  // namespace winnow::engine
