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

/// A part of a tool call, as it is sent.
struct CallDelta {
  std::size_t index = 0;       ///< index of the call in its answer
  std::string id = {};         ///< set in the first delta of the call
  std::string name = {};       ///< set in the first delta of the call
  std::string arguments = {};  ///< the next part of its JSON
};

/// The part of an answer since its last delta. Text and reasoning are whole characters, except at the end of an answer
/// that ends within a character.
struct AnswerDelta {
  std::string reasoning = {};
  std::string text = {};
  std::vector<CallDelta> calls = {};
  std::vector<GeneratedToken> tokens = {};  ///< with log probabilities, if requested

  /// Appends the next delta, except for its tokens.
  void add(const AnswerDelta& more) {
    reasoning += more.reasoning;
    text += more.text;
    for (const auto& call : more.calls) add(call);
  }
  /// Merges parts of the same call: a delta has one for each call.
  void add(const CallDelta& call) {
    if (calls.empty() || calls.back().index != call.index) {
      calls.push_back(call);
    } else {
      calls.back().arguments += call.arguments;
    }
  }

  /// True if there is no text, reasoning or call.
  bool says_nothing() const { return reasoning.empty() && text.empty() && calls.empty(); }
};

/// The end of an answer.
struct AnswerEnd {
  FinishReason reason = FinishReason::stop;
  std::string stop = {};           ///< the stop text that ended it, or ""
  bool has_called = false;         ///< the answer has complete calls
  bool is_of_last_prompt = false;  ///< all other prompts of the request have ended
  /// Log probabilities of the prompt's tokens from the second on, if requested.
  std::shared_ptr<const std::vector<GeneratedToken>> prompt_logprobs = nullptr;
};

/// Sends the events of a request's answers to a client, in the format of one API. Choices are numbered in the order of
/// the prompts. Called in the HTTP thread, in this order: refused(); or begun(), any number of deltas, one ended() for
/// each choice, and finished(). failed() may replace all remaining calls. goes_on() is called during long silences.
/// Costs are the current ones.
class AnswerWriter {
 public:
  AnswerWriter() = default;
  AnswerWriter(const AnswerWriter&) = delete;
  AnswerWriter& operator=(const AnswerWriter&) = delete;
  virtual ~AnswerWriter() = default;

  virtual void refused(const std::exception_ptr& why) = 0;
  virtual void begun() = 0;
  /// Called while the request waits, its prompt is read, or its answer is held back.
  virtual void goes_on() = 0;
  virtual void delta(int choice, AnswerDelta delta, const AnswerCost& now) = 0;
  virtual void ended(int choice, const AnswerEnd& end, const AnswerCost& now) = 0;
  virtual void finished(const AnswerCost& cost) = 0;
  virtual void failed(const std::exception_ptr& error) = 0;
};

}  // namespace winnow::server
