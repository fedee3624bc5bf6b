// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace winnow {

/// An append-only file of whole lines, with one writing process at a time. Move-only.
class LineFile {
 public:
  /// Opens or creates the file. Throws InputError for missing permission, or if it is not regular.
  explicit LineFile(std::string path);
  LineFile(LineFile&& other) noexcept;
  LineFile& operator=(LineFile&&) = delete;
  ~LineFile();

  /// Descriptor for reading and writing.
  int descriptor() const { return fd_; }
  /// Locks the file against all other processes until it is closed. Throws InputError, which calls the file `name`, if
  /// another process has locked it, or locking fails.
  void lock(const std::string& name) const;
  /// Returns when the lines are on disk. Throws InputError (a full or broken disk); the file is then unchanged.
  void append(std::string_view lines) const;
  /// Truncates the file to `bytes` bytes.
  void cut_to(std::size_t bytes) const;
  /// Removes the file if this object has created it and it is empty. REQUIRES: it is locked.
  void remove_if_empty() const;

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  bool made_ = false;  ///< created by this object
  int fd_;
};

}  // namespace winnow
