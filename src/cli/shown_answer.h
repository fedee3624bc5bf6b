// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "winnow/answer_splitter.h"

namespace winnow::cli {

/// Whether a person sees what a model thinks before it answers.
enum class ShownThinking : std::uint8_t { shown, hidden };

/// An answer as it comes. What is said goes to stdout, what is thought to stderr, dimmed on a terminal: a pipe gets
/// answers only.
class ShownAnswer {
 public:
  explicit ShownAnswer(ShownThinking thinking) : thinking_(thinking) {}

  /// Throws what write_stdout() does.
  void add(const AnswerPart& part);
  /// Ends the answer's line. Throws what write_stdout() does.
  void end();
  /// The same of an answer that failed, if it has begun to say something and stdout has not failed.
  void break_off();

 private:
  void think(std::string_view thought);
  void end_thinking();

  ShownThinking thinking_;
  bool thinks_ = false;
  bool says_ = false;
};

}  // namespace winnow::cli
