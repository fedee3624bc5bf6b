// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/byte_store.h"

namespace winnow::store {

/// A record in the file of records.
struct FiledRecord {
  std::string key;
  std::span<const std::byte> bytes;
  std::string value = {};  ///< key of the value that contains a large record; empty: `bytes` is the record
};

/// Keys of the values that a step added and erased.
struct StepValues {
  std::vector<std::string> added;
  std::vector<std::string> erased;  ///< none of them is in `added`
};

/// All records of a store in a folder, after a step. Each step replaces the file: docs/file-formats.md.
class RecordFile {
 public:
  /// Throws InputError that begins with `name` for anything that write() does not write.
  RecordFile(Bytes file, const std::string& name);
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  /// Writes a file. REQUIRES: records in order of their keys.
  static void write(ByteSink& to, std::span<const FiledRecord> records, const StepValues& step);

  /// Null if there is no such record.
  const FiledRecord* find(std::string_view key) const;
  /// The records whose keys begin with `prefix`.
  std::span<const FiledRecord> beginning_with(std::string_view prefix) const;
  const StepValues& last_step() const { return step_; }

 private:
  Bytes file_;
  std::vector<FiledRecord> records_;  ///< in order of their keys
  StepValues step_;
};

}  // namespace winnow::store
