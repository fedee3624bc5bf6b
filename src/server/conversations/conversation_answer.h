// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "chat/answer_format.h"
#include "server/conversations/conversations.h"
#include "server/engine_thread.h"
#include "server/post.h"
#include "server/workers.h"

namespace winnow::server {

/// Stores the answer of a conversation's turn before the client learns of its end: an answer that a client has received
/// is never lost.
class ConversationAnswer : public AnswerListener {
 public:
  /// `said` are the messages of this turn, `format` is the answer's format. `workers` outlives the listener.
  ConversationAnswer(std::shared_ptr<AnswerListener> next, std::shared_ptr<ConversationTurn> turn,
                     std::vector<AskedMessage> said, chat::AnswerFormat format, Workers& workers, Post to_http)
      : next_(std::move(next)),
        turn_(std::move(turn)),
        said_(std::move(said)),
        format_(std::move(format)),
        workers_(workers),
        to_http_(std::move(to_http)) {}

  void accepted() override { next_->accepted(); }
  void refused(std::exception_ptr why) override;
  void read(std::size_t prompt, const CacheStats& stats, std::shared_ptr<const KeptPositions> kept) override {
    next_->read(prompt, stats, std::move(kept));
  }
  void token(std::size_t prompt, int answer, const GeneratedToken& token, const std::string& text) override {
    next_->token(prompt, answer, token, text);
  }
  void ended(std::size_t prompt, PromptEnd end) override;
  void cancelled(std::size_t prompt, PromptEnd end) override;

 private:
  std::shared_ptr<AnswerListener> next_;
  std::shared_ptr<ConversationTurn> turn_;
  std::vector<AskedMessage> said_;
  chat::AnswerFormat format_;
  Workers& workers_;
  Post to_http_;
};

}  // namespace winnow::server
