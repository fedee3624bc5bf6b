// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/text_lines.h"
#include "winnow/error.h"
#include "winnow/model.h"

namespace winnow::cli {

/// A line of `run --jsonl` that is not a prompt: file, line and reason.
class BadLine : public InputError {
 public:
  using InputError::InputError;
};

struct JsonlPrompt {
  std::string id;  ///< its own, or the number of its line
  PromptText prompt;
};

/// The prompts of a file, one JSON object a line with text and question (or prompt), read one at a time.
class JsonlPrompts {
 public:
  /// Lines take missing fields from `defaults`. Throws InputError.
  JsonlPrompts(const std::string& path, PromptText defaults);

  /// The next prompt; empty at the end. Throws BadLine, after which the next call reads the following line; InputError
  /// if the file cannot be read; Interrupted.
  std::optional<JsonlPrompt> next();
  /// Number of lines read so far.
  int lines() const { return lines_.number(); }
  const TextInput& input() const { return lines_.input(); }

 private:
  PromptText defaults_;
  TextLines lines_;
};

}  // namespace winnow::cli
