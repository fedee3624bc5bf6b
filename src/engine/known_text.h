// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/scratch.h"
#include "engine/growing_state.h"
#include "engine/hidden_states.h"
#include "engine/session_impl.h"
#include "engine/stored_part.h"
#include "engine/text_room.h"
#include "winnow/policy/observer.h"

namespace winnow::engine {

/// The part of a text that a reading takes from memory, and the blocks that it leaves in all tiers.
class KnownText {
 public:
  /// Takes blocks of the part. States are kept near the text's end, for this text and longer ones, and where it
  /// branches off from a stored one, for others with this beginning. `shared`: number of its blocks that are stored
  /// anywhere. `limits`: those of all passes. Session, stores and text outlive it.
  KnownText(Session::Impl& session, TextTiers stores, StoredPart part, std::span<const Token> text, std::size_t shared,
            const PassLimits& limits);
  KnownText(const KnownText&) = delete;
  KnownText& operator=(const KnownText&) = delete;

  /// The most tokens of a text of `tokens` tokens that can be known if at least `passing` pass.
  static int most(int tokens, int passing) {
    return std::max(0, tokens - passing) / TextBlock::kTokens * TextBlock::kTokens;
  }
  /// Takes more, in a pass after the first one, of the text that the first one has stored.
  void begin_later_pass(const PassLimits& limits);
  /// Tokens whose keys and values are known.
  int tokens() const { return known_ * TextBlock::kTokens; }
  /// Tokens that can be taken by a text that begins with the first `common` tokens of this one and needs these states,
  /// when this one is stored.
  int will_store(int common, const FactNames& states) const;
  const std::string& owner() const { return part_.owner; }
  /// Puts the known rows in `rows`, rounded to whole blocks, into a scratch. They replace its rows from the first of
  /// them on. Throws TextLost.
  void put(int layer, RowRange rows, cache::LayerScratch& to) const;
  /// Copies a layer's rows into the new blocks, unless they cannot be written. REQUIRES: a scratch with the rows of the
  /// text.
  void copy(int layer, const cache::LayerScratch& from);
  /// An observer, which has begun a layer, continues after the known tokens, and keeps its state.
  void begin_observer(int layer, const policy::ObserverRequest& request, policy::Observer& observer);
  /// Stores the new blocks and states, when all layers have been copied.
  void store();

 private:
  /// Takes what the limits allow, unless it is less than now.
  void find(const PassLimits& limits);
  void reserve_states(const PassLimits& limits, std::size_t shared);
  /// Bytes of a state that grows, in each layer, after the first blocks: [0 … last block][layer].
  std::vector<std::vector<std::size_t>> ends_of(const PassLimits& limits, const std::string& name) const;
  /// Rows after which states are kept: the most that the same text can take; those of the last whole block, for longer
  /// texts; and the first ones, in `shared` blocks, that a stored text has, too.
  std::set<int> places_of_states(const PassLimits& limits, std::size_t shared) const;
  void reserve_blocks(const model::Hparams& hparams, const PassLimits& limits);
  /// Begins a new block whose rows stay in the tier. Returns false if that is not possible.
  bool add_filed_block(const model::Hparams& hparams, std::span<const Token> tokens);
  void use_filed_blocks() const;
  /// Number of the text's first blocks that memory has, or will have when the text is stored.
  std::size_t blocks_in_memory() const;
  void store_state(int rows, const std::string& name);
  /// Queues the chain and the states for writing.
  void keep_in_tier() const;

  MemoryAccount& account_;
  TextStore& store_;
  TextTier* tier_;
  StoredPart part_;
  std::span<const Token> text_;
  std::vector<TextBlockPtr> chain_;                           ///< stored blocks of the text's beginning
  int known_ = 0;                                             ///< number of these blocks that the reading uses
  std::vector<std::shared_ptr<TextBlock>> read_;              ///< new blocks, after the chain
  std::vector<TextName> names_;                               ///< of all blocks, if there is a tier
  std::map<std::string, LayerBytesPtr, std::less<>> found_;   ///< states after the known tokens that do not grow
  std::map<std::string, GrowingState, std::less<>> growing_;  ///< those that do
  /// States that are being written or will be, by the rows after which they hold, and by name.
  std::map<int, std::map<std::string, std::shared_ptr<LayerBytes>, std::less<>>> kept_;
  /// States that are being written, with the last layer. If several branches have the same state, one writes it.
  std::map<std::pair<int, std::string>, int> observed_;
  TextRoom room_;
};

}  // namespace winnow::engine
