#pragma once

#include <map>
#include <string>

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
  JsonlAnswers(const JsonlAnswers&) = delete;
  JsonlAnswers& operator=(const JsonlAnswers&) = delete;
  ~JsonlAnswers();

  /// Whether an earlier run has answered what has this hash; each of its answers counts once.
  bool take_known(const std::string& hash);
  /// Appends whole lines; they are on the disk then. Throws InputError, and what was there is there.
  void append(const std::string& lines);

 private:
  void check(const TextInput& prompts) const;
  void lock() const;
  void load();
  void take(const std::string& line, const TextLines& at);
  void cut_to(std::size_t bytes) const;
  [[noreturn]] void fail(int error) const;

  std::string path_;
  int fd_ = -1;
  std::map<std::string, int> known_;  ///< how many answers there are of each hash
};

}  // namespace winnow::cli
