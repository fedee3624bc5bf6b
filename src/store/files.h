// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/byte_stream.h"
#include "store/byte_store.h"

/// Files of stores in folders. Errors of the system are thrown as std::system_error, which a store turns into a
/// sentence with its name (MarkedFolder::fail). Links are not followed.
namespace winnow::store {

/// Closes its file descriptor in the destructor.
class Descriptor {
 public:
  /// Throws the last error of the system if `fd` is -1.
  explicit Descriptor(int fd);
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

/// A file opened for reading.
class OpenFile {
 public:
  /// Nullopt if there is no such file, or if it is not a regular one.
  static std::optional<OpenFile> open(const std::string& path);

  std::size_t size() const { return size_; }
  /// True if `path` is still this file, which it is not after another one was renamed to it.
  bool is_at(const std::string& path) const;
  /// Reads parts, each to an address that is aligned for all types. A part is too short if the file was cut meanwhile.
  Lease read(std::span<const ByteRange> ranges) const;
  Bytes read_all() const;
  /// Lets the kernel read the file ahead.
  void will_be_read() const;

 private:
  OpenFile(Descriptor file, std::size_t size) : file_(std::move(file)), size_(size) {}
  std::size_t read_at(std::size_t begin, std::span<std::byte> out) const;

  Descriptor file_;
  std::size_t size_;
};

/// A new file that is written under a temporary name. The destructor removes it, unless it was renamed or kept.
class PartFile : public ByteSink {
 public:
  /// Only the owner of the file may read it. REQUIRES: a path that does not exist.
  explicit PartFile(std::string path);
  PartFile(PartFile&& other) noexcept
      : path_(std::exchange(other.path_, {})), file_(std::move(other.file_)), written_(other.written_) {}
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile() override;

  void write(std::span<const std::byte> bytes) override;
  std::size_t written() const { return written_; }
  /// Sets its file_times().
  void set_times(std::int64_t ns) const;
  int get() const { return file_.get(); }
  void rename_to(const std::string& path);
  void keep() { path_.clear(); }

 private:
  std::string path_;  ///< empty: not to be removed
  Descriptor file_;
  std::size_t written_ = 0;
};

/// Writes to an existing file.
void write_to(const std::string& path, std::size_t at, std::span<const std::byte> bytes);

/// Times of last access and modification at `ns` since 1970.
std::array<timespec, 2> file_times(std::int64_t ns);

/// Opens a folder, for sync_all().
Descriptor open_folder(const std::string& path);

/// Waits until these files and the names in these folders are on disk. Uses several threads, so that the disk does it
/// at once: its time is that of a few files, however many there are.
void sync_all(std::span<const int> descriptors);

}  // namespace winnow::store
