// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/files.h"
#include "store/marked_folder.h"
#include "store/record_file.h"

namespace winnow::store {

/// Files of a store in a folder (docs/file-formats.md):
///
///     winnow-store-1     the mark, locked during a step
///     records            all records; a step happens when another file, records.part, is renamed to this one
///     values/KEY.value   a value
///     parts/KEY.part     a value of a step that has not happened or is not finished
///
/// Thread-safe. Throws std::system_error unless stated otherwise.
class FolderFiles {
 public:
  /// Opens the folder. Throws UsageError, InputError.
  FolderFiles(const Place& place, Missing missing);

  const MarkedFolder& folder() const { return folder_; }

  /// The records after the last step. Throws InputError if they are damaged.
  std::shared_ptr<const RecordFile> records() const;
  /// A value, if it belongs to a step that has happened.
  std::optional<OpenFile> value(const std::string& key) const;

  /// Waits until no other step is being made, finishes the last one if its process was killed, and removes files of
  /// steps that have not happened. The lock is held while the descriptor is open.
  Descriptor lock() const;
  /// A file for a value of the step that is being made. REQUIRES: the lock.
  PartFile new_value(const std::string& key) const;
  /// Makes a step: replaces the records, then finishes. REQUIRES: the lock.
  void replace_records(std::span<const FiledRecord> records, const StepValues& step,
                       std::vector<PartFile> values) const;

 private:
  struct Snapshot {
    Snapshot(OpenFile opened, const std::string& path);
    OpenFile file;  ///< stays open, so that no later file gets its number
    RecordFile records;
  };

  void refuse_earlier_format() const;
  void create() const;
  std::string records_path() const { return folder_.path_of("records"); }
  std::string value_path(const std::string& key) const { return folder_.path_of("values/" + key + ".value"); }
  std::string part_path(const std::string& key) const;
  bool has_values() const;
  int finish(const StepValues& step) const;
  void remove_parts(const StepValues& last) const;

  MarkedFolder folder_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Snapshot> last_;
};

}  // namespace winnow::store
