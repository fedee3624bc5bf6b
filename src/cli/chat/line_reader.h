// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::cli {

/// Where the lines of a conversation come from.
class LineReader {
 public:
  virtual ~LineReader() = default;
  /// The next turn without its end; nothing at the end of the input. A turn that was cancelled with Ctrl-C is empty.
  /// Throws InputError when the input cannot be read.
  virtual std::optional<std::string> next() = 0;
};

/// Help for a line that is being typed. Lines are given up to the cursor.
class TypingHelp {
 public:
  virtual ~TypingHelp() = default;
  /// The words that the last word of `line` may become.
  virtual std::vector<std::string> completions(std::string_view line) const = 0;
  /// True where the last word of `line` names a file.
  virtual bool is_path(std::string_view line) const = 0;
  /// Says in a few words what `line` would do; empty where there is nothing to say.
  virtual std::string hint(std::string_view line) const = 0;
};

/// Throws InputError when no line can come from stdin: it is closed, a folder, or opened for writing alone.
void check_stdin();

/// Turns that somebody types, with a prompt, editing, `help`, and a history that is kept in the user's state folder
/// where that can be written. Pasted lines are one turn; Alt+Enter, or a \ at the end of a line, begins another line of
/// the same turn. `help` must live as long as the reader.
std::unique_ptr<LineReader> edited_lines(const TypingHelp& help);

/// Lines of stdin as they come.
std::unique_ptr<LineReader> plain_lines();

}  // namespace winnow::cli
