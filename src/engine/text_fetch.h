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
  /// Number of blocks in memory or in the tier.
  std::size_t found_blocks() const;
  std::size_t states_after(std::size_t blocks) const;
  /// True if the tier has all states after the first blocks. REQUIRES: more than the known ones.
  bool has_states(std::size_t blocks) const;
  bool add_blocks(TierRequest& wanted);
  bool add_states(TierRequest& wanted);
  void store();
  void read_less(std::size_t bad);
  void end();

  Session::Impl& session_;
  TextTiers stores_;
  StoredPart part_;
  std::span<const Token> text_;
  PassLimits limits_;
  std::vector<std::string> states_;  ///< names of the states that the reading needs
  std::vector<TextBlockPtr> chain_;  ///< blocks in memory
  std::size_t known_;                ///< number of them after which all these states are in memory, too
  std::size_t first_;                ///< number of blocks that were in memory at first
  std::size_t shared_;               ///< number of blocks in memory or in the tier
  std::vector<TextName> names_;      ///< of the part's blocks
  /// Whether the tier has each of the blocks after the first ones, and then the states after each block that is not
  /// known.
  std::vector<bool> exist_;
  std::size_t reached_ = 0;                      ///< number of blocks after which the reading is to begin
  std::vector<std::shared_ptr<TextBlock>> new_;  ///< blocks that are read
  std::vector<LayerBytesPtr> facts_;             ///< states that were read
  std::shared_ptr<TierRequest> asked_;
  Phase phase_ = Phase::ended;
  TextRoom room_;
  std::size_t last_next_ = 0;  ///< progress at its last change
  Clock::time_point moved_;    ///< time of that change
};

}  // namespace winnow::engine
