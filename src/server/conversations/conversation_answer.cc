// SPDX-License-Identifier: Apache-2.0
#include "server/conversations/conversation_answer.h"

namespace winnow::server {

void ConversationAnswer::ended(std::size_t prompt, PromptEnd end) {
  if (end.error) {
    turn_.reset();  // the client may retry at once
    return next_->ended(prompt, std::move(end));
  }
  const auto shared = std::make_shared<PromptEnd>(std::move(end));
  workers_.post(
      [next = next_, turn = turn_, said = said_, format = format_, to_http = to_http_, prompt, shared]() mutable {
        try {
          turn->keep(std::move(said), format.parse(shared->answers.front().text));
        } catch (...) {
          shared->error = std::current_exception();
        }
        turn.reset();
        to_http([next, prompt, shared] { next->ended(prompt, std::move(*shared)); });
      });
  turn_.reset();
}

void ConversationAnswer::refused(std::exception_ptr why) {
  turn_.reset();
  next_->refused(std::move(why));
}

void ConversationAnswer::cancelled(std::size_t prompt, PromptEnd end) {
  turn_.reset();
  next_->cancelled(prompt, std::move(end));
}

}  // namespace winnow::server
