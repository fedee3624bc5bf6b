// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/session_impl.h"
#include "engine/stored_part.h"
#include "engine/text_room.h"

namespace winnow::engine {

/// Brings what a reading can take of a text from a tier into memory, before the reading begins: blocks, and the states
/// after them. Holds them during its lifetime, so that they are not dropped before.
class TextFetch {
 public:
  /// Looks for what memory lacks of the part that the limits allow. Session, stores and text outlive it, and so does
  /// what the limits refer to. REQUIRES: a tier.
  TextFetch(Session::Impl& session, TextTiers stores, StoredPart part, std::span<const Token> text,
            const PassLimits& limits);
  TextFetch(const TextFetch&) = delete;
  TextFetch& operator=(const TextFetch&) = delete;
  ~TextFetch() { end(); }

  /// Continues if the tier's threads are ready. Returns false when there is nothing to wait for.
  bool advance();
  /// Number of the part's blocks that are stored anywhere, as far as is known.
  std::size_t shared() const { return shared_; }

 private:
  enum class Phase : std::uint8_t { looking, reading, ended };
  bool is_stuck();
  void begin_reading();
  /// Takes over what a look has found, and computes sizes of states.
  void take_existing();
  /// Number of blocks in memory or in the tier.
  std::size_t found_blocks() const;
  /// Place in exist_ of a state, the number `state` of all_, after some blocks. REQUIRES: more than the known ones.
  std::size_t state_after(std::size_t blocks, std::size_t state) const;
  /// The most of the first blocks about which the tier has all states; those known, if there are no more.
  std::size_t with_states(std::size_t blocks) const;
  bool add_blocks(TierRequest& wanted);
  /// Adds a block in memory, if there are so many more bytes for it.
  bool add_block(TierRequest& wanted, std::size_t block, std::size_t bytes);
  /// Adds a block whose rows stay in the store.
  void add_filed_block(TierRequest& wanted, std::size_t block);
  bool add_states(TierRequest& wanted);
  /// Adds a state after some blocks, or its piece with the last of them, to `wanted` and `to`.
  bool add_state(TierRequest& wanted, std::size_t blocks, std::size_t state, std::vector<LayerBytesPtr>& to);
  /// Bytes of that in each layer.
  std::vector<std::size_t> state_sizes(std::size_t blocks, std::size_t state) const;
  void store();
  void read_less(std::size_t bad);
  void end();

  Session::Impl& session_;
  TextTiers stores_;
  StoredPart part_;
  std::span<const Token> text_;
  PassLimits limits_;
  FactNames states_;                 ///< states that the reading needs
  std::vector<std::string> all_;     ///< all their names, first those that are stored along the text
  std::vector<TextBlockPtr> chain_;  ///< blocks in memory
  std::size_t known_;                ///< number of them after which all these states are in memory, too
  std::size_t first_;                ///< number of blocks that were in memory at first
  std::size_t shared_;               ///< number of blocks in memory or in the tier
  std::vector<TextName> names_;      ///< of the part's blocks
  /// Whether the tier has each of the blocks after the first ones, and then the states after each block that is not
  /// known. Empty pieces of states exist.
  std::vector<bool> exist_;
  std::vector<StateSizes> sizes_;                  ///< of the states after each block from the known ones on
  std::vector<std::size_t> wanted_;                ///< place in exist_ of each state or piece that is read
  std::size_t reached_ = 0;                        ///< number of blocks after which the reading is to begin
  std::vector<std::shared_ptr<TextBlock>> new_;    ///< blocks that are read
  std::vector<std::vector<LayerBytesPtr>> along_;  ///< pieces of states that are read, [name][block after the known]
  std::vector<LayerBytesPtr> after_;               ///< other states that are read, [name]
  std::shared_ptr<TierRequest> asked_;
  Phase phase_ = Phase::ended;
  TextRoom room_;
  std::size_t last_next_ = 0;  ///< progress at its last change
  Clock::time_point moved_;    ///< time of that change
};

}  // namespace winnow::engine
