// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cache/element.h"
#include "engine/session_impl.h"
#include "engine/text_store.h"
#include "engine/text_tier.h"

namespace winnow::engine {

/// Stores of full keys and values, which outlive readings.
struct TextTiers {
  TextStore& memory;
  TextTier* tier = nullptr;  ///< null: only memory
};

/// Brings blocks of a text from a tier into memory, before its reading begins. Holds them during its lifetime, so that
/// they are not dropped before.
class TextFetch {
 public:
  /// Looks for the blocks of `text` that follow those in memory. REQUIRES: a tier.
  TextFetch(Session::Impl& session, TextTiers stores, std::string owner, std::span<const Token> text, ElementType type);
  TextFetch(const TextFetch&) = delete;
  TextFetch& operator=(const TextFetch&) = delete;
  ~TextFetch();

  /// Continues if the tier's threads are ready. Returns false when there is nothing to wait for.
  bool advance();

 private:
  enum class Phase : std::uint8_t { counting, reading, ended };
  bool is_stuck();
  void begin_reading();
  void store();
  void end();

  Session::Impl& session_;
  TextTiers stores_;
  std::string owner_;
  std::vector<Token> text_;  ///< after the blocks in memory
  ElementType type_;
  std::vector<TextBlockPtr> chain_;
  std::shared_ptr<TierBlocks> asked_;
  Phase phase_ = Phase::ended;
  std::size_t reserved_ = 0;
  std::size_t last_next_ = 0;  ///< progress at its last change
  Clock::time_point moved_;    ///< time of that change
};

}  // namespace winnow::engine
