// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/extension.h"
#include "engine/prefixes.h"
#include "engine/promise.h"
#include "engine/prompt_reading.h"
#include "engine/session_impl.h"
#include "winnow/scheduler.h"

namespace winnow::engine {

/// A text that is read and compressed by quanta, stage after stage. Its first stage is a prompt. A later one is read
/// like a turn of a conversation: after what is left of those before it. Stages that were read before are looked up, so
/// that only the rest is read.
class TextReading {
 public:
  /// All outlive it.
  TextReading(Session::Impl& session, const Request& request, const TextPlan& plan, Prefixes& prefixes);

  /// Whether its stages are looked up and stored.
  bool is_shared() const { return owner_.has_value(); }
  /// Whether it is going to store something that `later`, which has not begun, begins with, and more of it than is
  /// stored.
  bool will_store_more_of(const TextReading& later) const;

  /// Takes what is stored. Throws MemoryError.
  void begin();
  /// Tokens that were stored.
  std::size_t found() const { return found_; }
  /// Before begin(): whether all of it is stored.
  bool is_done() const { return (has_begun_ ? stage_ : stored()) == stages(); }
  /// Reads one quantum. REQUIRES: !is_done().
  void advance();
  /// Tokens that have still to be read; one that has passed half of the layers is half a token.
  double tokens_left() const;
  /// What has been compressed so far.
  std::vector<const Cache*> caches() const;

  /// REQUIRES: is_done().
  Cache take_cache() { return std::move(*cache_); }
  /// [n_vocab] of the last token.
  std::vector<float> take_logits() { return std::move(logits_); }
  /// The log probabilities that were asked for, as far as they are there.
  std::vector<GeneratedToken> take_scored() { return std::move(scored_); }

 private:
  /// The first `stages` stages.
  Prefix prefix(std::size_t stages) const;
  std::size_t stored_bytes() const;
  /// Stages that are stored now. The scheduler asks for it all the time: texts are compared when others are stored.
  std::size_t stored() const;
  /// The next number of stages, from this one on, after which what is kept is stored.
  std::size_t next_stored(std::size_t stages) const;
  /// The stage that is being read.
  const TextPlan::Part& part() const { return plan_.parts()[stage_]; }
  std::size_t stages() const { return plan_.parts().size(); }
  std::span<const Token> stage_tokens() const;
  void begin_stage();
  void advance_reading();
  void append_tokens();
  /// Returns false when all tokens have been scored.
  bool score();
  void take_read();
  void end_stage();

  Session::Impl& session_;
  const Request& request_;
  const TextPlan& plan_;
  Prefixes& prefixes_;
  std::vector<std::size_t> ends_;  ///< [stage]
  struct Lookup {
    std::uint64_t generation;  ///< of the prefixes
    std::size_t stages;
  };

  std::optional<std::string> owner_;
  mutable std::optional<Lookup> lookup_;  ///< the last one
  bool has_begun_ = false;
  std::size_t found_ = 0;
  std::size_t stage_ = 0;  ///< that is being read
  std::optional<Past> past_;
  std::optional<PromptReading> reading_;
  std::optional<Extension> extension_;  ///< where the stage is only appended
  bool has_passed_ = false;             ///< the stage through all layers
  std::vector<GeneratedToken> scored_;
  std::optional<Cache> cache_;
  std::vector<float> logits_;
};

}  // namespace winnow::engine
