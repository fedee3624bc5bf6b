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

/// Turns what the engine tells into the events of answers: pieces as their tokens come if the request wants a stream,
/// else one piece for each answer when it has ended. All in the thread for HTTP.
class Answering : public AnswerListener {
 public:
  Answering(std::shared_ptr<const Model> model, AnswerPlan plan, const MakeReader& make_reader,
            std::shared_ptr<AnswerWriter> writer);

  /// Takes the call that ends the other prompts of the request when one has failed.
  void on_failure(std::function<void()> cancel) { cancel_ = std::move(cancel); }

  /// Hears what was kept of the first prompt, just before the end of the answer is told.
  void on_finish(std::function<void(std::shared_ptr<const KeptPositions>)> remember) {
    remember_ = std::move(remember);
  }

  void accepted() override { writer_->begun(); }
  void refused(std::exception_ptr why) override;
  void read(std::size_t prompt, const CacheStats& stats, std::shared_ptr<const KeptPositions> kept) override;
  void token(std::size_t prompt, int answer, const GeneratedToken& token, const std::string& text) override;
  void ended(std::size_t prompt, PromptEnd end) override;

 private:
  /// An answer as far as it has come.
  struct Choice {
    int index = 0;
    std::unique_ptr<AnswerReader> reader;
    std::string held = {};                    ///< bytes that the reader has not got yet
    std::size_t received = 0;                 ///< bytes
    std::vector<GeneratedToken> unsent = {};  ///< whose log probabilities are not told yet
    std::size_t reported = 0;                 ///< tokens with log probabilities
    int tokens = 0;                           ///< that the cost counts
    bool has_called = false;
  };

  Choice& choice(std::size_t prompt, int answer);
  bool is_all_ended() const { return ended_ == plan_.prompt_tokens.size(); }
  /// Tells a piece, with the log probabilities that wait for one.
  void tell(Choice& choice, AnswerPiece piece);
  void end_choice(Choice& choice, const Generation& generation, AnswerEnd end);
  /// The stop text that has ended an answer; empty: none has.
  std::string stop_of(const Generation& generation) const;

  std::shared_ptr<const Model> model_;
  AnswerPlan plan_;
  std::shared_ptr<AnswerWriter> writer_;
  std::function<void()> cancel_;
  std::function<void(std::shared_ptr<const KeptPositions>)> remember_;
  std::shared_ptr<const KeptPositions> kept_;  ///< of the first prompt; null: not known
  std::vector<Choice> choices_;
  std::size_t ended_ = 0;  ///< prompts
  bool failed_ = false;
};

}  // namespace winnow::server
