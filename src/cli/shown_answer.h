// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "winnow/answer_splitter.h"

namespace winnow::cli {

/// Whether the model's reasoning is shown.
enum class ShownThinking : std::uint8_t { shown, hidden };

/// Prints an answer as it is generated. The answer goes to stdout, the reasoning to stderr, dimmed on a terminal, so
/// that a pipe gets only answers.
class ShownAnswer {
 public:
  explicit ShownAnswer(ShownThinking thinking) : thinking_(thinking) {}

  /// Throws what write_stdout() throws.
  void add(const AnswerPart& part);
  /// Ends the answer's line. Throws what write_stdout() throws.
  void end();
  /// Ends the line of a failed answer, if any of it has been printed and stdout has not failed.
  void break_off();

 private:
  void think(std::string_view thought);
  void end_thinking();

  ShownThinking thinking_;
  bool thinks_ = false;
  bool says_ = false;
};

}  // namespace winnow::cli
