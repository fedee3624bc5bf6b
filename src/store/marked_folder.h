// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "store/byte_store.h"

namespace winnow::store {

/// A folder for winnow's own files. It contains an empty file as a mark, whose name ends with the version of the
/// format.
class MarkedFolder {
 public:
  /// `mark` is a name such as `winnow-texts-1`.
  MarkedFolder(Place place, std::string mark);

  /// True if the folder has the mark. Throws UsageError if it is no folder or has another version, StoreError if it
  /// cannot be read.
  bool exists() const;
  /// Creates the folder, with its missing parents, and the mark. Only their owner may read what is created. Throws
  /// UsageError if the folder has other files, StoreError if it cannot be written.
  void create() const;
  /// Creates a folder in it, unless it exists.
  void create_inner(std::string_view name) const;

  const Place& place() const { return place_; }
  /// Path of a file in it. It is absolute, so that it stays valid if the process changes its folder.
  std::string path_of(std::string_view file) const { return root_ + "/" + std::string(file); }
  std::string mark() const { return path_of(mark_); }

  /// Throws UsageError: `cannot keep the documents in …: WHY`.
  [[noreturn]] void refuse(const std::string& why) const;
  /// Throws StoreError for an error code of the system: `cannot DOING the documents in …: …`.
  [[noreturn]] void fail(const std::string& doing, int error) const;

 private:
  Place place_;
  std::string root_;
  std::string mark_;
};

}  // namespace winnow::store
