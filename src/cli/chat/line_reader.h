// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace winnow::cli {

/// Where the lines of a conversation come from.
class LineReader {
 public:
  virtual ~LineReader() = default;
  /// The next line without its end; nothing at the end of the input. A line that was cancelled with Ctrl-C is empty.
  /// Throws InputError when the input cannot be read.
  virtual std::optional<std::string> next() = 0;
};

/// Throws InputError when no line can come from stdin: it is closed, a folder, or opened for writing alone.
void check_stdin();

/// Lines that somebody types, with a prompt, editing, and a history that is kept in the user's state folder where that
/// can be written.
std::unique_ptr<LineReader> edited_lines();

/// Lines of stdin as they come.
std::unique_ptr<LineReader> plain_lines();

}  // namespace winnow::cli
