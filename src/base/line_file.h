// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace winnow {

/// A file of whole lines that one process at a time adds to. What is there is never rewritten. Move-only.
class LineFile {
 public:
  /// Opens or makes it. Throws InputError: no permission, not a regular file.
  explicit LineFile(std::string path);
  LineFile(LineFile&& other) noexcept;
  LineFile& operator=(LineFile&&) = delete;
  ~LineFile();

  /// Open for reading and writing.
  int descriptor() const { return fd_; }
  /// Keeps all other processes from locking it until it is closed. Throws InputError, which calls the file `name`, when
  /// one has it already, or the file cannot be locked.
  void lock(const std::string& name) const;
  /// The lines are on the disk when it returns. Throws InputError (a full disk, a broken one); what was there before is
  /// as it was.
  void append(std::string_view lines) const;
  /// Takes back what is after so many bytes.
  void cut_to(std::size_t bytes) const;
  /// Removes the file if this object has made it and it is empty. REQUIRES: it is locked.
  void remove_if_empty() const;

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  bool made_ = false;  ///< it was not there before
  int fd_;
};

}  // namespace winnow
