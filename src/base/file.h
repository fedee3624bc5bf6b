// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/byte_stream.h"

namespace winnow {

/// A regular file opened for reading. Not copyable.
class FileSource : public ByteSource {
 public:
  /// Throws InputError for a file that is missing, unreadable or not regular.
  explicit FileSource(const std::string& path);
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override;

  std::size_t size() const override { return size_; }
  const std::string& name() const override { return path_; }
  void read(std::size_t at, std::span<std::byte> out) const override;

 private:
  std::string path_;
  int fd_ = -1;
  std::size_t size_ = 0;
};

/// First bytes of files that may be replaced, and their name in messages. An empty file is of every kind.
struct FileKind {
  std::string_view beginning;
  std::string_view noun = "a file";
};

/// True if a file begins with these bytes. Throws like FileSource.
bool begins_with(const std::string& path, std::string_view beginning);

/// Throws InputError if ReplacingFile would, as far as that is known without writing. For long work before the first
/// write.
void check_replaceable(const std::string& path, const FileKind& kind = {});

/// Permissions of a new file. A replaced file keeps its own.
enum class Readers : std::uint8_t {
  by_umask,
  owner,  ///< mode 0600, for people's questions and texts
};

/// A file that is replaced atomically. Data goes to a file beside it (NAME.01234567.winnow-part), which is renamed when
/// everything is on disk. Until commit() the old file stays; without commit() nothing is left behind. Follows links.
/// Removes what killed processes left when writing the same file.
class ReplacingFile : public ByteSink {
 public:
  /// Throws InputError for missing permission, a folder or device at `path`, a file of another kind, a dangling link,
  /// or a missing folder.
  explicit ReplacingFile(const std::string& path, Readers readers = Readers::by_umask, const FileKind& kind = {});
  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;
  ~ReplacingFile() override;

  /// Throws InputError, for instance if the disk is full.
  void write(std::span<const std::byte> bytes) override;
  /// Throws InputError; the old file is then still there.
  void commit();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[noreturn]] void fail(int error) const;
  int open_part(mode_t mode);

  std::string path_;  ///< destination, with links followed
  std::string part_;
  std::unique_ptr<std::FILE, Close> file_;
  std::size_t written_ = 0;
};

}  // namespace winnow
