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

/// Reads prompts by quanta, as a plan says: the only way in which prompts are read.
class PromptReading {
 public:
  /// The session outlives it. Throws MemoryError where the machine has less than the plan needs.
  PromptReading(Session::Impl& session, ReadingPlan plan, const ReadingInput& input);
  PromptReading(const PromptReading&) = delete;
  PromptReading& operator=(const PromptReading&) = delete;
  ~PromptReading() = default;

  /// One chunk passes through one layer, or one token of a draft is generated. Returns false when there is no more to
  /// do. Throws MemoryError and Interrupted.
  bool advance();
  /// The share of all passes that is done.
  double done() const;
  /// A prompt's caches as they are now, in no order, with those of drafters.
  std::vector<const Cache*> caches(std::size_t prompt) const;
  /// As those of Prefill.
  std::vector<Cache> take_caches(std::size_t prompt);
  std::vector<float> logits(std::size_t prompt) { return prefill_->logits(prompt); }
  void text_logits(RowRange tokens, std::span<float> out) { prefill_->text_logits(tokens, out); }
  void text_states(RowRange tokens, std::span<float> out) { prefill_->text_states(tokens, out); }
  /// Reads all that is left.
  std::vector<Prefilled> run();

 private:
  std::size_t prompts() const { return plan_.first().branches().size(); }
  Rankings begin_rankings() const;
  void begin_pass(const PrefillPlan& plan, const Rankings& rankings);
  void end_first_pass();
  bool advance_pass();
  bool draft();
  void begin_second_pass();

  Session::Impl& session_;
  ReadingPlan plan_;
  std::vector<Token> text_;
  std::vector<std::vector<Token>> questions_;
  const Past* past_;
  policy::Observer* observer_;
  std::function<void(double)> progress_;
  Rankings rankings_;  ///< of the first pass
  Drafts drafts_;
  std::optional<PrefillPlan> second_;                    ///< with these
  std::optional<Prefill> prefill_;                       ///< none while drafts are generated
  std::vector<std::vector<std::optional<Cache>>> kept_;  ///< [prompt][cache] by the first pass, when it is over
  std::vector<std::vector<float>> logits_;               ///< [prompt][n_vocab] what a draft begins with
  std::vector<float> next_;                              ///< [n_vocab] what the one in work goes on with
  std::size_t drafts_done_ = 0;                          ///< prompt by prompt, of caches of the second pass
};

}  // namespace winnow::engine
