// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/prefill.h"
#include "engine/reading_plan.h"
#include "engine/session_impl.h"

namespace winnow::engine {

/// Reads prompts by quanta, as a plan says. All readings of prompts use it.
class PromptReading {
 public:
  /// The session outlives it. Throws MemoryError if the machine has less memory than the plan needs.
  PromptReading(Session::Impl& session, ReadingPlan plan, const ReadingInput& input);
  PromptReading(const PromptReading&) = delete;
  PromptReading& operator=(const PromptReading&) = delete;
  ~PromptReading() = default;

  /// Runs one chunk through one layer, or generates one token of a draft. Returns false when all is done. Throws
  /// MemoryError and Interrupted.
  bool advance();
  /// Fraction of all passes that is done.
  double done() const;
  /// A prompt's caches so far, those of drafters included, in no particular order.
  std::vector<const Cache*> caches(std::size_t prompt) const;
  /// As in Prefill.
  std::vector<Cache> take_caches(std::size_t prompt);
  std::vector<float> logits(std::size_t prompt) { return prefill_->logits(prompt); }
  void text_logits(RowRange tokens, std::span<float> out) { prefill_->text_logits(tokens, out); }
  void text_states(RowRange tokens, std::span<float> out) { prefill_->text_states(tokens, out); }
  /// Runs to the end.
  std::vector<Prefilled> run();

 private:
  std::size_t prompts() const { return plan_.first().branches().size(); }
  Rankings begin_rankings() const;
  void begin_pass(const PrefillPlan& plan, const Rankings& rankings);
  void end_first_pass();
  bool advance_pass();
  bool draft();
  void begin_second_pass();
  void take_known_text();

  Session::Impl& session_;
  ReadingPlan plan_;
  std::vector<Token> text_;
  std::vector<std::vector<Token>> questions_;
  const Past* past_;
  KnownText* known_;
  RowRange outputs_;
  policy::Observer* observer_;
  std::function<void(double)> progress_;
  Rankings rankings_;  ///< of the first pass
  Drafts drafts_;
  std::optional<PrefillPlan> second_;                    ///< plan of the second pass, with these drafts
  std::optional<Prefill> prefill_;                       ///< nullopt while drafts are generated
  std::vector<std::vector<std::optional<Cache>>> kept_;  ///< [prompt][cache], of the first pass after its end
  std::vector<std::vector<float>> logits_;               ///< [prompt][n_vocab], for the first token of a draft
  std::vector<float> next_;                              ///< [n_vocab], for the next token of the current draft
  std::size_t drafts_done_ = 0;                          ///< counted prompt by prompt, over caches of the second pass
};

}  // namespace winnow::engine
