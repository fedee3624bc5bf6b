// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/line_file.h"
#include "base/text_lines.h"

namespace winnow::cli {

/// The file to which `run --jsonl` appends answers: one JSON object a line, whose first members are "hash" (16 hex
/// digits, of all that the answer depends on) and "id", and which has an "answer". Existing lines are never rewritten;
/// only an incomplete last line of a killed run is removed.
class JsonlAnswers {
 public:
  /// Opens or creates the file, locks it, and reads its answers. Throws UsageError if it is the file of the prompts,
  /// InputError if a line is not an answer (naming the line), if another process writes to it, or if it cannot be read
  /// or written.
  JsonlAnswers(const std::string& path, const TextInput& prompts);
  /// Removes the file if it is still empty.
  ~JsonlAnswers() { file_.remove_if_empty(); }
  JsonlAnswers(const JsonlAnswers&) = delete;
  JsonlAnswers& operator=(const JsonlAnswers&) = delete;

  /// True if an earlier run has answered a prompt with this hash. Uses up one of its answers.
  bool take_known(const std::string& hash);
  /// Appends whole lines, and writes them to the disk before it returns. Throws InputError; earlier lines stay.
  void append(const std::string& lines) const { file_.append(lines); }

 private:
  void load();
  void take(const std::string& line, const TextLines& at);

  std::string path_;
  LineFile file_;
  std::map<std::string, int> known_;  ///< number of answers for each hash
};

}  // namespace winnow::cli
