// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::cli {

/// The source of a conversation's lines.
class LineReader {
 public:
  virtual ~LineReader() = default;
  /// The next turn without its newline; empty at the end of the input. A turn cancelled by Ctrl-C is "". Throws
  /// InputError if the input cannot be read.
  virtual std::optional<std::string> next() = 0;
};

/// Help for a line that is being typed. Functions get the line up to the cursor.
class TypingHelp {
 public:
  virtual ~TypingHelp() = default;
  /// Completions of the last word of `line`.
  virtual std::vector<std::string> completions(std::string_view line) const = 0;
  /// True if the last word of `line` is a file's name.
  virtual bool is_path(std::string_view line) const = 0;
  /// A few words about the effect of `line`, or "".
  virtual std::string hint(std::string_view line) const = 0;
};

/// Throws InputError if stdin cannot be read: it is closed, a folder, or open for writing only.
void check_stdin();

/// Reads turns from a terminal, with a prompt, editing, `help`, and a history in the user's state folder if it is
/// writable. Pasted lines are one turn; Alt+Enter, or a \ at the end of a line, continues the turn on another line.
/// `help` must outlive the reader.
std::unique_ptr<LineReader> edited_lines(const TypingHelp& help);

/// Reads turns from the lines of stdin.
std::unique_ptr<LineReader> plain_lines();

}  // namespace winnow::cli
