// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/line_file.h"
#include "eval/record.h"

namespace winnow::eval {

/// Repairs of a file of records.
struct Repairs {
  int cut_lines = 0;       ///< an incomplete last line
  int partial_groups = 0;  ///< groups with missing records
};

/// A folder's records.jsonl. Adds whole groups, so that a killed process loses only the group that it was measuring.
/// Only one process may write to it at a time.
class RecordFile {
 public:
  /// Opens or creates the file and its folder, and repairs what a killed process has left. Throws InputError, leaving
  /// the file as it was: no permission, another process at work, a failed read, a line that is not a record, a record
  /// of another model (naming file, line and both hashes).
  RecordFile(const std::string& folder, const std::string& model_hash);
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  const std::vector<Record>& records() const { return records_; }
  const Repairs& repairs() const { return repairs_; }

  /// Writes the records to the disk before it returns. Throws InputError for a full or broken disk, leaving the file as
  /// it was.
  void add(std::span<const Record> group);

 private:
  void load(const std::string& model_hash);
  void rewrite() const;

  std::string path_;
  std::optional<LineFile> lock_;  ///< locks a file of its own, since a repair replaces the file of records
  std::optional<LineFile> file_;
  std::vector<Record> records_;
  Repairs repairs_;
};

/// The complete lines of a file that another process may be writing. Throws InputError as above.
std::vector<Record> read_records(const std::string& path);

}  // namespace winnow::eval
