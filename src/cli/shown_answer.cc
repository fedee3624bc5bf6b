// SPDX-License-Identifier: Apache-2.0
#include "cli/shown_answer.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/output.h"

namespace winnow::cli {

namespace {

/// Sets the style of the following text on stderr, on a terminal.
void set_style(const char* escape) {
  if (isatty(STDERR_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr) std::fputs(escape, stderr);
}

}  // namespace

void ShownAnswer::add(const AnswerPart& part) {
  if (!part.reasoning.empty() && thinking_ == ShownThinking::shown) think(part.reasoning);
  if (part.content.empty()) return;
  end_thinking();
  says_ = true;
  write_stdout(part.content);
}

void ShownAnswer::end() {
  end_thinking();
  write_stdout("\n");
}

void ShownAnswer::break_off() {
  end_thinking();
  if (says_ && std::ferror(stdout) == 0) write_stdout("\n");
}

void ShownAnswer::think(std::string_view thought) {
  if (!thinks_) set_style("\033[2m");
  thinks_ = true;
  tell(thought);
}

void ShownAnswer::end_thinking() {
  if (!thinks_) return;
  thinks_ = false;
  set_style("\033[0m");
  tell("\n\n");
}

}  // namespace winnow::cli
