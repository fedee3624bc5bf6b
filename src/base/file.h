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

/// A regular file that is read. Move-only.
class FileSource : public ByteSource {
 public:
  /// Throws InputError: missing, a folder, no regular file, unreadable.
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

/// What files that may be replaced begin with, and what messages call them. An empty file is of every kind.
struct FileKind {
  std::string_view beginning;
  std::string_view noun = "a file";
};

/// Whether a file begins with these bytes. Throws what FileSource throws.
bool begins_with(const std::string& path, std::string_view beginning);

/// Throws InputError when ReplacingFile would, as far as can be known without writing: for those who work long before
/// they have something to write.
void check_replaceable(const std::string& path, const FileKind& kind = {});

/// Who may read a file that was not there before. One that is replaced keeps its permissions.
enum class Readers : std::uint8_t {
  by_umask,
  owner,  ///< mode 0600, for what people have asked and read
};

/// A file that is replaced in one step: all goes to a file beside it (NAME.01234567.winnow-part), which takes its name
/// when everything is on the disk. Until commit() what was there stays; without commit() nothing is left behind. Links
/// are followed. What a killed process has left of its writing to the same file is removed.
class ReplacingFile : public ByteSink {
 public:
  /// Throws InputError: no permission, a folder or a device of that name, a file of another kind, a link to nothing, no
  /// folder to write to.
  explicit ReplacingFile(const std::string& path, Readers readers = Readers::by_umask, const FileKind& kind = {});
  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;
  ~ReplacingFile() override;

  /// Throws InputError: a full disk.
  void write(std::span<const std::byte> bytes) override;
  /// Throws InputError; what was there is then still there.
  void commit();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  [[noreturn]] void fail(int error) const;
  int open_part(mode_t mode);

  std::string path_;  ///< where it goes, links followed
  std::string part_;
  std::unique_ptr<std::FILE, Close> file_;
  std::size_t written_ = 0;
};

}  // namespace winnow
