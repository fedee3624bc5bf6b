// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace winnow::test {

/// A file in memory whose path is valid while the object lives.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd_(memfd_create("input", 0)) {
    if (fd_ < 0 || write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(fd_); }
  /// Its current content.
  std::string bytes() const {
    std::string out(static_cast<std::size_t>(lseek(fd_, 0, SEEK_END)), '\0');
    if (pread(fd_, out.data(), out.size(), 0) != static_cast<ssize_t>(out.size())) std::abort();
    return out;
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace winnow::test
