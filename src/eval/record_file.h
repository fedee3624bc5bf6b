// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/line_file.h"
#include "eval/record.h"

namespace winnow::eval {

/// What there was to repair in a file of records.
struct Repairs {
  int cut_lines = 0;       ///< a last line without its end
  int partial_groups = 0;  ///< of which some records are missing
};

/// A folder's records.jsonl. Groups of records are added as a whole, so that a killed process loses only the group it
/// was measuring. One process writes to it at a time.
class RecordFile {
 public:
  /// Opens or begins it, makes the folder, and repairs what a killed process has left. Throws InputError: no
  /// permission, another process at work, a read that fails, a line that is no record, a record of another model (file,
  /// line and both hashes). The file is then as it was.
  RecordFile(const std::string& folder, const std::string& model_hash);
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  const std::vector<Record>& records() const { return records_; }
  const Repairs& repairs() const { return repairs_; }

  /// The records are on the disk when this returns. Throws InputError (a full disk, a broken one), and the file is then
  /// as it was.
  void add(std::span<const Record> group);

 private:
  void load(const std::string& model_hash);
  void rewrite() const;

  std::string path_;
  std::optional<LineFile> lock_;  ///< a file of its own: that of the records is replaced when it is repaired
  std::optional<LineFile> file_;
  std::vector<Record> records_;
  Repairs repairs_;
};

/// The records of a file that somebody else may be writing: its complete lines. Throws InputError as above.
std::vector<Record> read_records(const std::string& path);

}  // namespace winnow::eval
