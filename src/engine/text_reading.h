// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/extension.h"
#include "engine/kept_texts.h"
#include "engine/known_text.h"
#include "engine/prefixes.h"
#include "engine/promise.h"
#include "engine/prompt_reading.h"
#include "engine/session_impl.h"
#include "engine/text_fetch.h"
#include "winnow/scheduler.h"

namespace winnow::engine {

/// Stores of a scheduler, which outlive its readings.
struct TextStores {
  Prefixes& prefixes;  ///< compressed texts
  TextTiers texts;     ///< keys and values of texts
};

/// Reads and compresses a text by quanta, stage after stage. The first stage is a prompt. Later ones are read like
/// turns of a conversation, after the remaining entries of earlier ones. Stages that were read before are looked up, so
/// that only the rest is read.
class TextReading {
 public:
  /// All outlive it. REQUIRES: a request for a text.
  TextReading(Session::Impl& session, const Request& request, const TextPlan& plan, TextStores stores);

  /// True if stages are looked up and stored.
  bool is_shared() const { return owner_.has_value(); }
  /// True if it will store more of the beginning of `later` than is stored now, and `later` should wait for that.
  /// REQUIRES: `later` has not begun.
  bool will_store_more_of(const TextReading& later) const;

  /// Begins to bring stored keys and values into memory, if they are elsewhere. Does nothing after the first call.
  void fetch();
  bool has_fetched() const { return has_fetched_ || !may_fetch(); }
  /// Continues to bring them. Returns true until they are in memory.
  bool is_fetching() { return fetch_ && fetch_->advance(); }
  /// Takes the stored stages. Throws MemoryError.
  void begin();
  /// True if the text's keys and values are looked up and stored.
  bool is_known_text() const;
  /// False if nothing can be fetched from a tier.
  bool may_fetch() const;
  /// Number of tokens that were stored.
  std::size_t found() const { return found_; }
  /// True if all stages are read; before begin(), if all are stored.
  bool is_done() const { return (has_begun_ ? stage_ : stored()) == stages(); }
  /// Reads one quantum. REQUIRES: !is_done().
  void advance();
  /// Number of tokens left to read, without those that are stored now; a token that has passed half of the layers
  /// counts as half.
  double tokens_left() const;
  /// Caches of the stages so far.
  std::vector<const Cache*> caches() const;

  /// REQUIRES: is_done().
  Cache take_cache() { return std::move(*cache_); }
  /// Logits of the last token, [n_vocab].
  std::vector<float> take_logits() { return std::move(logits_); }
  /// The requested log probabilities computed so far.
  std::vector<GeneratedToken> take_scored() { return std::move(scored_); }

 private:
  /// Key of the first `stages` stages.
  Prefix prefix(std::size_t stages) const;
  std::size_t stored_bytes() const;
  /// Number of stages that are stored now. The result is cached, because the scheduler asks often: texts are compared
  /// again only when the stored ones have changed.
  std::size_t stored() const;
  /// The smallest number of stages, at least `stages`, after which the cache is stored.
  std::size_t next_stored(std::size_t stages) const;
  /// The stage that is being read.
  const TextPlan::Part& part() const { return plan_.parts()[stage_]; }
  std::size_t stages() const { return plan_.parts().size(); }
  std::span<const Token> stage_tokens() const;
  void begin_stage();
  void begin_text();
  /// The first tokens of the first stage, without those that must pass.
  StoredPart known_part() const;
  PassLimits limits() const;
  /// The part that may be taken from the store now. The result is cached like that of stored().
  struct Known {
    std::uint64_t generation;  ///< of `texts_.memory`
    StoredPart part;
    FactNames states;  ///< that observers need
    int most;          ///< tokens that may be taken
    int tokens;        ///< of these, tokens that are stored
  };
  /// Null if the text is not looked up. REQUIRES: not begun.
  const Known* known_now() const;
  bool will_store_stages_of(const TextReading& later) const;
  bool will_store_blocks_of(const TextReading& later) const;
  void advance_reading();
  void begin_again();
  void append_tokens();
  /// Returns false when all tokens have been scored.
  bool score();
  void take_read();
  void end_stage();

  Session::Impl& session_;
  const RequestText& text_;
  const TextPlan& plan_;
  Prefixes& prefixes_;
  TextTiers texts_;
  std::vector<std::size_t> ends_;  ///< [stage]
  struct Lookup {
    std::uint64_t generation;  ///< of `prefixes_`
    std::size_t stages;
  };

  std::optional<std::string> owner_;
  mutable std::optional<Lookup> lookup_;  ///< result of the last lookup
  mutable std::optional<Known> known_lookup_;
  bool has_begun_ = false;
  std::size_t found_ = 0;
  std::size_t stage_ = 0;  ///< the current stage
  std::optional<Past> past_;
  bool has_fetched_ = false;
  std::optional<TextFetch> fetch_;
  std::optional<KnownText> known_;
  std::optional<PromptReading> reading_;
  std::optional<Extension> extension_;  ///< set if the stage is only appended
  bool has_passed_ = false;             ///< the stage has passed through all layers
  std::vector<GeneratedToken> scored_;
  std::optional<Cache> cache_;
  std::vector<float> logits_;
};

}  // namespace winnow::engine
