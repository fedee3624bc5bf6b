// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/engine_thread.h"
#include "server/http/message.h"
#include "server/openai/answer.h"
#include "server/tools/calls.h"
#include "winnow/model.h"

namespace winnow::server {

/// What a request wants to hear.
struct AnswerPlan {
  AnswerForm form;
  AnswerHead head;
  AnswerCost cost;                              ///< with what is known before it begins
  std::vector<int> prompt_tokens;               ///< [prompt]
  std::vector<std::vector<Token>> echoed = {};  ///< [prompt], where prompts come before their answers
};

/// Tells a client the answers to its prompts, as a whole or as they come. Choices are numbered prompt by prompt. All in
/// the thread for HTTP.
class Answering : public AnswerListener {
 public:
  Answering(std::shared_ptr<const Model> model, AnswerPlan plan, std::shared_ptr<Responder> to);

  /// What ends the other prompts of the request when one has failed.
  void on_failure(std::function<void()> cancel) { cancel_ = std::move(cancel); }

  /// Hears what was kept of the first prompt, just before the end of the answer is told.
  void on_finish(std::function<void(std::shared_ptr<const KeptPositions>)> remember) {
    remember_ = std::move(remember);
  }

  void accepted() override;
  void refused(std::exception_ptr why) override;
  void read(std::size_t prompt, const CacheStats& stats, std::shared_ptr<const KeptPositions> kept) override;
  void token(std::size_t prompt, int answer, const GeneratedToken& token, const std::string& text) override;
  void ended(std::size_t prompt, PromptEnd end) override;

 private:
  /// An answer as far as it has come.
  struct Choice {
    int index = 0;
    std::string held;                    ///< bytes that are not sent yet
    std::size_t received = 0;            ///< bytes
    bool is_calls = false;               ///< what it says are calls of tools, which are told when it has ended
    std::vector<GeneratedToken> unsent;  ///< whose log probabilities are not sent yet
    std::size_t reported = 0;            ///< tokens with log probabilities
    int tokens = 0;
    std::size_t offset = 0;  ///< characters, for the older form of log probabilities
  };

  Choice& choice(std::size_t prompt, int answer);
  /// Log probabilities in the form of the request; null where none are wanted.
  Json logprobs(std::span<const GeneratedToken> tokens, Choice& choice) const;
  Json chunk(Json choice) const;
  Json piece(Choice& choice, const std::string& text, const Json& finish);
  bool is_all_ended() const { return ended_ == plan_.prompt_tokens.size(); }
  std::vector<ToolCall> calls_of(const Generation& generation) const;
  std::string id_of_calls(const Choice& choice) const;
  void end_stream_of(Choice& choice, const Generation& generation);
  Json whole_choice(Choice& choice, Generation& generation) const;
  void put_prompt_before(Json& out, const Choice& choice, Generation& generation) const;
  void fail(const std::exception_ptr& error);
  void finish();

  std::shared_ptr<const Model> model_;
  AnswerPlan plan_;
  std::shared_ptr<Responder> to_;
  std::function<void()> cancel_;
  std::function<void(std::shared_ptr<const KeptPositions>)> remember_;
  std::shared_ptr<const KeptPositions> kept_;  ///< of the first prompt; null: not known
  std::vector<Choice> choices_;
  std::vector<Generation> answers_;                  ///< those that came as a whole, [choice]
  std::vector<std::vector<GeneratedToken>> scored_;  ///< of the prompts' tokens from the second on, [prompt]
  std::size_t ended_ = 0;                            ///< prompts
  bool failed_ = false;
};

}  // namespace winnow::server
