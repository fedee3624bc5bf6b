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

/// A saved sequence without its lanes and logits.
struct SavedHead {
  CacheOptions options;
  std::string spec_full;  ///< the spec with all defaults of the program that wrote it
  ModelIdentity model;
  std::int32_t seen = 0;
  policy::Terms terms;                  ///< of the first layer without a window; the others follow from them
  std::vector<std::vector<int>> limit;  ///< [layer][KV head]
  Transcript transcript;

  void write(ByteSink& to) const;
  /// Throws InputError for invalid values. Does not check that they fit a model.
  static SavedHead read(ByteCursor& from, int sections);
};

/// The head of a sequence that is about to be saved.
SavedHead head_of(const Sequence& sequence, const ModelIdentity& model, Transcript transcript);

/// Parses text that users can also type, such as specs. Converts UsageError to InputError.
template <class Read>
auto as_typed(const ByteCursor& from, const Read& read) {
  try {
    return read();
  } catch (const UsageError& error) {
    from.fail(error.what());
  }
}

}  // namespace winnow::engine
