// SPDX-License-Identifier: Apache-2.0
#include "base/line_file.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "winnow/error.h"

namespace winnow {

namespace {

int open_lines(const std::string& path, int how) {
  return open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | how, 0666);
}

}  // namespace

LineFile::LineFile(std::string path) : path_(std::move(path)), fd_(open_lines(path_, O_CREAT | O_EXCL)) {
  made_ = fd_ >= 0;
  if (fd_ < 0 && errno == EEXIST) fd_ = open_lines(path_, O_CREAT);
  struct stat info {};
  if (fd_ < 0 || fstat(fd_, &info) != 0) {
    const int error = errno;
    if (fd_ >= 0) close(fd_);
    fail(error);
  }
  if (S_ISREG(info.st_mode)) return;
  close(fd_);
  throw InputError(fmt::format("cannot write {}: it is not a regular file", path_));
}

LineFile::LineFile(LineFile&& other) noexcept
    : path_(std::move(other.path_)), made_(other.made_), fd_(std::exchange(other.fd_, -1)) {}

LineFile::~LineFile() {
  if (fd_ >= 0) close(fd_);
}

void LineFile::fail(int error) const {
  throw InputError(fmt::format("cannot write {}: {}", path_, std::strerror(error)));
}

void LineFile::lock(const std::string& name) const {
  struct stat info {};
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) {
    if (fstat(fd_, &info) == 0 && info.st_nlink > 0) return;
    throw InputError(fmt::format("{}: another process has just removed it", name));
  }
  if (errno == EWOULDBLOCK) throw InputError(fmt::format("{}: another process is writing to it", name));
  throw InputError(fmt::format("cannot lock {}: {}", path_, std::strerror(errno)));
}

void LineFile::append(std::string_view lines) const {
  const off_t before = lseek(fd_, 0, SEEK_END);
  std::string_view left = lines;
  while (!left.empty()) {
    const ssize_t n = write(fd_, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    left.remove_prefix(static_cast<std::size_t>(n));
  }
  if (left.empty() && fdatasync(fd_) == 0) return;
  const int error = errno;
  const auto own_end = before + static_cast<off_t>(lines.size() - left.size());
  if (lseek(fd_, 0, SEEK_END) == own_end) cut_to(static_cast<std::size_t>(before));
  fail(error);
}

void LineFile::cut_to(std::size_t bytes) const {
  if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail(errno);
}

void LineFile::remove_if_empty() const {
  struct stat info {};
  if (made_ && fstat(fd_, &info) == 0 && info.st_size == 0) unlink(path_.c_str());
}

}  // namespace winnow
