// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <random>
#include <string_view>

#include "winnow/error.h"

namespace winnow {

namespace {

/// Reason why a path cannot be read or replaced as a file; empty: none.
std::string no_file(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a folder";
  return S_ISREG(mode) ? "" : "it is not a regular file";
}

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// Makes a rename durable.
void sync_folder(const std::string& path) {
  const int fd = open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);  // not supported by every file system; the file itself is safe
  close(fd);
}

constexpr std::string_view kPartEnd = ".winnow-part";
constexpr std::size_t kPartDigits = 8;

/// True if a folder's entry has the name of one of a file's parts.
bool is_part_name(std::string_view entry, std::string_view file) {
  if (entry.size() != file.size() + 1 + kPartDigits + kPartEnd.size()) return false;
  const auto digits = entry.substr(file.size() + 1, kPartDigits);
  return entry.starts_with(file) && entry[file.size()] == '.' && entry.ends_with(kPartEnd) &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Removes a part without a writer: writers hold a lock.
void remove_if_abandoned(const std::string& part) {
  const int fd = open(part.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  struct stat info {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0) unlink(part.c_str());
  close(fd);
}

void remove_abandoned_parts(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder_of(path), error), end; !error && at != end; at.increment(error)) {
    if (is_part_name(at->path().filename().native(), name)) remove_if_abandoned(at->path().string());
  }
}

/// The first bytes, at most `most`.
std::string first_bytes(const std::string& path, std::size_t most) {
  const FileSource file(path);
  std::string out(std::min(file.size(), most), '\0');
  file.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

bool is_of_kind(const std::string& path, const FileKind& kind) {
  if (kind.beginning.empty()) return true;
  const std::string beginning = first_bytes(path, kind.beginning.size());
  return beginning.empty() || beginning == kind.beginning;
}

/// Copies owner and permissions of the replaced file, as far as possible.
void copy_permissions(const struct stat& from, int to) {
  [[maybe_unused]] const int owner = fchown(to, from.st_uid, from.st_gid);
  fchmod(to, from.st_mode & 0777U);
}

}  // namespace

FileSource::FileSource(const std::string& path) : path_(path) {
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer must not block
  struct stat info {};
  std::string why = fd_ < 0 || fstat(fd_, &info) != 0 ? std::strerror(errno) : no_file(info.st_mode);
  if (!why.empty()) {
    if (fd_ >= 0) close(fd_);
    throw InputError(fmt::format("cannot read {}: {}", path, why));
  }
  size_ = static_cast<std::size_t>(info.st_size);
}

FileSource::~FileSource() { close(fd_); }

void FileSource::read(std::size_t at, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = pread(fd_, out.data(), out.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw InputError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
    if (n == 0)
      throw InputError(fmt::format("cannot read {}: it is now shorter than the {} bytes that it had", path_, size_));
    at += static_cast<std::size_t>(n);
    out = out.subspan(n);
  }
}

bool begins_with(const std::string& path, std::string_view beginning) {
  return first_bytes(path, beginning.size()) == beginning;
}

void check_replaceable(const std::string& path, const FileKind& kind) {
  struct stat info {};
  std::string why;
  if (stat(path.c_str(), &info) == 0) {
    why = no_file(info.st_mode);
    if (why.empty() && access(path.c_str(), W_OK) != 0) why = std::strerror(errno);
    if (why.empty() && !is_of_kind(path, kind)) why = fmt::format("it exists and is not {}", kind.noun);
  } else if (errno != ENOENT) {
    why = std::strerror(errno);
  } else if (lstat(path.c_str(), &info) == 0) {
    why = "it is a link to a file that does not exist";
  }
  if (!why.empty()) throw InputError(fmt::format("cannot write {}: {}", path, why));
  if (access(folder_of(path).c_str(), W_OK | X_OK) != 0)
    throw InputError(fmt::format("cannot write {}: cannot write to its folder: {}", path, std::strerror(errno)));
}

ReplacingFile::ReplacingFile(const std::string& path, Readers readers, const FileKind& kind) : path_(path) {
  check_replaceable(path, kind);
  struct stat info {};
  const bool replaces = stat(path.c_str(), &info) == 0;
  if (replaces) path_ = std::filesystem::canonical(path).string();
  remove_abandoned_parts(path_);
  const int fd = open_part(replaces || readers == Readers::owner ? 0600 : 0666);
  if (replaces) copy_permissions(info, fd);
  file_.reset(fdopen(fd, "wb"));
  if (file_ == nullptr) throw std::bad_alloc();
}

int ReplacingFile::open_part(mode_t mode) {
  for (std::random_device random;;) {
    part_ = fmt::format("{}.{:08x}{}", path_, random(), kPartEnd);
    const int fd = open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) throw InputError(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
    flock(fd, LOCK_EX);  // on a file system without locks, no part ever counts as abandoned
    struct stat info {};
    if (fstat(fd, &info) == 0 && info.st_nlink > 0) return fd;
    close(fd);  // it was removed as abandoned before it was locked
  }
}

ReplacingFile::~ReplacingFile() {
  if (file_ != nullptr) unlink(part_.c_str());
}

void ReplacingFile::fail(int error) const {
  throw InputError(fmt::format("cannot write {} after {} bytes: {}", path_, written_, std::strerror(error)));
}

void ReplacingFile::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;  // may have no address
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail(errno);
  written_ += bytes.size();
}

void ReplacingFile::commit() {
  if (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0 ||
      std::rename(part_.c_str(), path_.c_str()) != 0)
    fail(errno);
  file_.reset();
  sync_folder(path_);
}

}  // namespace winnow
