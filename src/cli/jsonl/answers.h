// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/line_file.h"
#include "base/text_lines.h"

namespace winnow::cli {

/// The file that `run --jsonl` appends its answers to: one JSON object a line, whose first members are "hash" (16 hex
/// digits, of all that the answer depends on) and "id", and which has an "answer". Existing lines are never rewritten:
/// only a last line that a killed run left unfinished is removed.
class JsonlAnswers {
 public:
  /// Opens or makes the file, locks it against other processes, and reads what was answered. Throws UsageError when it
  /// is the file of the prompts, InputError for what is no such file (with the line that is none), is being written by
  /// another process or cannot be read or written.
  JsonlAnswers(const std::string& path, const TextInput& prompts);
  /// Leaves no empty file behind that was not there before.
  ~JsonlAnswers() { file_.remove_if_empty(); }
  JsonlAnswers(const JsonlAnswers&) = delete;
  JsonlAnswers& operator=(const JsonlAnswers&) = delete;

  /// Whether an earlier run has answered a prompt with this hash. Each of its answers is taken once.
  bool take_known(const std::string& hash);
  /// Appends whole lines, which are on the disk when this returns. Throws InputError; earlier lines stay.
  void append(const std::string& lines) const { file_.append(lines); }

 private:
  void load();
  void take(const std::string& line, const TextLines& at);

  std::string path_;
  LineFile file_;
  std::map<std::string, int> known_;  ///< how many answers there are of each hash
};

}  // namespace winnow::cli
