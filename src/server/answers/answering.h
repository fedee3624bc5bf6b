// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/answers/events.h"
#include "server/answers/plan.h"
#include "server/answers/reader.h"
#include "server/engine_thread.h"
#include "winnow/model.h"

namespace winnow::server {

/// Makes one reader for each answer.
using MakeReader = std::function<std::unique_ptr<AnswerReader>()>;

/// Turns the engine's events into deltas of answers: for a stream, as tokens arrive; otherwise one delta for each
/// answer at its end. Runs in the HTTP thread.
class Answering : public AnswerListener {
 public:
  Answering(std::shared_ptr<const Model> model, AnswerPlan plan, const MakeReader& make_reader,
            std::shared_ptr<AnswerWriter> writer);

  /// Sets the call that ends the other prompts of the request if one fails.
  void on_failure(std::function<void()> cancel) { cancel_ = std::move(cancel); }

  /// Sets the call that gets the first prompt's kept positions, just before the writer is told that the request has
  /// finished.
  void on_finish(std::function<void(std::shared_ptr<const KeptPositions>)> remember) {
    remember_ = std::move(remember);
  }

  void accepted() override { writer_->begun(); }
  void refused(std::exception_ptr why) override;
  void read(std::size_t prompt, const CacheStats& stats, std::shared_ptr<const KeptPositions> kept) override;
  void token(std::size_t prompt, int answer, const GeneratedToken& token, const std::string& text) override;
  void ended(std::size_t prompt, PromptEnd end) override;

 private:
  /// State of one answer.
  struct Choice {
    int index = 0;
    std::unique_ptr<AnswerReader> reader;
    std::string held = {};                    ///< bytes not yet passed to the reader
    std::size_t received = 0;                 ///< bytes
    std::vector<GeneratedToken> unsent = {};  ///< tokens with log probabilities not yet sent
    std::size_t reported = 0;                 ///< tokens with log probabilities
    int tokens = 0;                           ///< number counted in the cost
    bool has_called = false;
  };

  Choice& choice(std::size_t prompt, int answer);
  bool is_all_ended() const { return ended_ == plan_.prompt_tokens.size(); }
  /// Sends a delta, with the pending log probabilities.
  void tell(Choice& choice, AnswerDelta delta);
  void end_choice(Choice& choice, const Generation& generation, AnswerEnd end);
  /// The stop text that ended an answer, or "".
  std::string stop_of(const Generation& generation) const;

  std::shared_ptr<const Model> model_;
  AnswerPlan plan_;
  std::shared_ptr<AnswerWriter> writer_;
  std::function<void()> cancel_;
  std::function<void(std::shared_ptr<const KeptPositions>)> remember_;
  std::shared_ptr<const KeptPositions> kept_;  ///< of the first prompt; null: unknown
  std::vector<Choice> choices_;
  std::size_t ended_ = 0;  ///< number of prompts
  bool failed_ = false;
};

}  // namespace winnow::server
