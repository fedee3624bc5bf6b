// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/byte_stream.h"
#include "engine/model_identity.h"
#include "engine/sequence.h"
#include "winnow/error.h"
#include "winnow/model.h"

namespace winnow::engine {

/// All of a saved sequence but its lanes and logits.
struct SavedHead {
  CacheOptions options;
  std::string spec_full;  ///< as the writer understood the spec
  ModelIdentity model;
  std::int32_t seen = 0;
  policy::Terms terms;                  ///< of the first layer without a window, from which those of the others follow
  std::vector<std::vector<int>> limit;  ///< [layer][KV head]
  Transcript transcript;

  void write(ByteSink& to) const;
  /// Throws InputError for what cannot be; whether it fits a model is another question.
  static SavedHead read(ByteCursor& from, int sections);
};

/// The head of a sequence that is about to be saved.
SavedHead head_of(const Sequence& sequence, const ModelIdentity& model, Transcript transcript);

/// Reads what users type as well, such as specs. Throws InputError in the place of UsageError.
template <class Read>
auto as_typed(const ByteCursor& from, const Read& read) {
  try {
    return read();
  } catch (const UsageError& error) {
    from.fail(error.what());
  }
}

}  // namespace winnow::engine
