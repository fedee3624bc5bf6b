// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/line_file.h"
#include "base/text_lines.h"

namespace winnow::cli {

/// The file that `run --jsonl` appends its answers to: one JSON object a line, whose first members are "hash" (16 hex
/// digits, of all that the answer depends on) and "id", and which has an "answer". What is there is never rewritten:
/// only a last line that a killed run could not finish is taken back.
class JsonlAnswers {
 public:
  /// Opens or makes the file, locks it against other processes, and reads what was answered. Throws UsageError when it
  /// is the file of the prompts, InputError for what is no such file (with the line that is none), is being written by
  /// another process or cannot be read or written.
  JsonlAnswers(const std::string& path, const TextInput& prompts);

  /// Whether an earlier run has answered what has this hash; each of its answers counts once.
  bool take_known(const std::string& hash);
  /// Appends whole lines; they are on the disk then. Throws InputError, and what was there is there.
  void append(const std::string& lines) const { file_.append(lines); }

 private:
  void load();
  void take(const std::string& line, const TextLines& at);

  std::string path_;
  LineFile file_;
  std::map<std::string, int> known_;  ///< how many answers there are of each hash
};

}  // namespace winnow::cli
