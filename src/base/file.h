#pragma once

#include <cstdio>
#include <memory>
#include <string>

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

/// Throws InputError when ReplacingFile would for this path, as far as can be known without writing: for those who work
/// long before they have something to write.
void check_replaceable(const std::string& path);

/// A file that is replaced in one step: all goes to a file beside it, which takes its name when everything is on the
/// disk. Until commit() what was there stays; without commit() nothing is left behind.
class ReplacingFile : public ByteSink {
 public:
  /// Throws InputError: no permission, a folder or a device of that name, no folder to write to.
  explicit ReplacingFile(const std::string& path);
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

  std::string path_;  ///< where it goes, links followed
  std::string part_;
  std::unique_ptr<std::FILE, Close> file_;
  std::size_t written_ = 0;
};

}  // namespace winnow
