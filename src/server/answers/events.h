// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "server/answers/cost.h"
#include "winnow/generate.h"

namespace winnow::server {

/// A piece of a call.
struct CallPiece {
  std::size_t index = 0;       ///< of the call, in its answer
  std::string id = {};         ///< where the call begins
  std::string name = {};       ///< where the call begins; empty elsewhere
  std::string arguments = {};  ///< a piece of its JSON
};

/// The part of an answer since its last piece. Text and reasoning are whole characters, except in the last piece of an
/// answer that ends within one.
struct AnswerPiece {
  std::string reasoning = {};
  std::string text = {};
  std::vector<CallPiece> calls = {};
  std::vector<GeneratedToken> tokens = {};  ///< with log probabilities, where they are asked for

  /// Adds what follows it, without tokens.
  void add(const AnswerPiece& more) {
    reasoning += more.reasoning;
    text += more.text;
    for (const auto& call : more.calls) add(call);
  }
  /// One piece has one of each call.
  void add(const CallPiece& call) {
    if (calls.empty() || calls.back().index != call.index) {
      calls.push_back(call);
    } else {
      calls.back().arguments += call.arguments;
    }
  }

  /// Whether there is nothing to be read in it.
  bool says_nothing() const { return reasoning.empty() && text.empty() && calls.empty(); }
};

/// How an answer has ended.
struct AnswerEnd {
  FinishReason reason = FinishReason::stop;
  std::string stop = {};           ///< the stop text that has ended it; empty: none has
  bool has_called = false;         ///< it has whole calls
  bool is_of_last_prompt = false;  ///< all other prompts of the request have ended
  /// Log probabilities of the prompt's tokens from the second on, where they were asked for.
  std::shared_ptr<const std::vector<GeneratedToken>> prompt_logprobs = nullptr;
};

/// Tells a client what happens to the answers of its request, in the form of a surface. Choices are numbered prompt by
/// prompt. Called in the thread for HTTP, in this order: refused(); or begun(), any number of piece() and of ended(),
/// one for each choice, and finished(). failed() may come in the place of all that is still missing. While nothing is
/// called for long, goes_on() is. Costs are as they are by then.
class AnswerWriter {
 public:
  AnswerWriter() = default;
  AnswerWriter(const AnswerWriter&) = delete;
  AnswerWriter& operator=(const AnswerWriter&) = delete;
  virtual ~AnswerWriter() = default;

  virtual void refused(const std::exception_ptr& why) = 0;
  virtual void begun() = 0;
  /// The request waits, its prompt is being read, or its answer is held back.
  virtual void goes_on() = 0;
  virtual void piece(int choice, AnswerPiece piece, const AnswerCost& now) = 0;
  virtual void ended(int choice, const AnswerEnd& end, const AnswerCost& now) = 0;
  virtual void finished(const AnswerCost& cost) = 0;
  virtual void failed(const std::exception_ptr& error) = 0;
};

}  // namespace winnow::server
