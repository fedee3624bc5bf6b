// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/scratch.h"
#include "engine/hidden_states.h"
#include "engine/session_impl.h"
#include "engine/text_fetch.h"

namespace winnow::engine {

/// The part of a text that a reading takes from memory, and the blocks that it leaves in all tiers.
class KnownText {
 public:
  /// Takes blocks of at most the first `most` tokens. Session and stores outlive it.
  KnownText(Session::Impl& session, TextTiers stores, std::string owner, std::span<const Token> text, int most,
            ElementType type);
  KnownText(const KnownText&) = delete;
  KnownText& operator=(const KnownText&) = delete;
  ~KnownText();

  /// Tokens whose keys and values are known.
  int tokens() const { return known_ * TextBlock::kTokens; }
  /// Puts the known rows in `rows`, rounded to whole blocks, into a scratch. They replace its rows from the first of
  /// them on.
  void put(int layer, RowRange rows, cache::LayerScratch& to) const;
  /// Copies a layer's rows into the new blocks. REQUIRES: a scratch with the rows of the text.
  void copy(int layer, const cache::LayerScratch& from);
  /// Stores the new blocks, when all layers have been copied.
  void store();

 private:
  TextStore& store_;
  TextTier* tier_;
  std::string owner_;
  std::vector<TextBlockPtr> chain_;               ///< stored blocks of the text's beginning
  int known_;                                     ///< number of these blocks that the reading uses
  std::vector<std::shared_ptr<TextBlock>> read_;  ///< new blocks, after the chain
  std::size_t reserved_ = 0;
};

}  // namespace winnow::engine
