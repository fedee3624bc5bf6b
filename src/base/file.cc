#include "base/file.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "winnow/error.h"

namespace winnow {

namespace {

/// Why a path is no file that can be read or replaced; empty: it is one.
std::string no_file(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a folder";
  return S_ISREG(mode) ? "" : "it is not a regular file";
}

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// Makes a rename last: it is the folder's.
void sync_folder(const std::string& path) {
  const int fd = open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);  // not every file system can; the file itself is safe
  close(fd);
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
    if (n == 0) throw InputError(fmt::format("cannot read {}: it has become shorter than its {} bytes", path_, size_));
    at += static_cast<std::size_t>(n);
    out = out.subspan(static_cast<std::size_t>(n));
  }
}

void check_replaceable(const std::string& path) {
  struct stat info {};
  const std::string why = stat(path.c_str(), &info) == 0 ? no_file(info.st_mode) : "";
  if (!why.empty()) throw InputError(fmt::format("cannot write {}: {}", path, why));
  if (access(folder_of(path).c_str(), W_OK | X_OK) != 0)
    throw InputError(fmt::format("cannot write {}: its folder: {}", path, std::strerror(errno)));
}

ReplacingFile::ReplacingFile(const std::string& path) : path_(path) {
  check_replaceable(path);
  std::error_code none;
  if (std::filesystem::exists(path, none)) path_ = std::filesystem::canonical(path).string();
  part_ = fmt::format("{}.{}.part", path_, getpid());
  file_.reset(std::fopen(part_.c_str(), "wb"));
  if (file_ == nullptr) throw InputError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

ReplacingFile::~ReplacingFile() {
  if (file_ != nullptr) unlink(part_.c_str());
}

void ReplacingFile::fail(int error) const {
  throw InputError(fmt::format("cannot write {} after {} bytes: {}", path_, written_, std::strerror(error)));
}

void ReplacingFile::write(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;  // and may have no address
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
