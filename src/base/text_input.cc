// SPDX-License-Identifier: Apache-2.0
#include "base/text_input.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text_kind.h"
#include "winnow/error.h"

namespace winnow {

namespace {

constexpr int kPatienceMs = 100;

/// Opens with O_NONBLOCK: otherwise a named pipe without a writer would block here, where `stop` is not polled.
int open_text(const std::string& path) {
  const int fd = path == "-" ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                             : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) throw InputError(fmt::format("cannot read {}: {}", path == "-" ? "stdin" : path, std::strerror(errno)));
  return fd;
}

}  // namespace

TextInput::TextInput(const std::string& path, std::function<bool()> stop)
    : TextInput(open_text(path), path == "-" ? "stdin" : path) {
  stop_ = std::move(stop);
  begun_ = false;
  check();
}

TextInput::TextInput(int fd, std::string name) : name_(std::move(name)), fd_(fd), begun_(true) {}

TextInput::TextInput(TextInput&& other) noexcept
    : name_(std::move(other.name_)),
      stop_(std::move(other.stop_)),
      fd_(std::exchange(other.fd_, -1)),
      begun_(other.begun_) {}

TextInput::~TextInput() {
  if (fd_ >= 0) close(fd_);
}

void TextInput::check() const {
  struct stat info {};
  if (fstat(fd_, &info) != 0) throw InputError(fmt::format("cannot read {}: {}", name_, std::strerror(errno)));
  if (S_ISDIR(info.st_mode)) throw InputError(fmt::format("cannot read {}: it is a folder", name_));
  if (S_ISBLK(info.st_mode) || (S_ISCHR(info.st_mode) && isatty(fd_) == 0))
    throw InputError(fmt::format("cannot read {}: it is a device", name_));
}

std::size_t TextInput::read(std::span<char> out) {
  for (;;) {
    pollfd input{fd_, POLLIN, 0};
    const int ready = poll(&input, 1, kPatienceMs);
    if (stop_ && stop_()) throw Interrupted("interrupted");
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t n = ::read(fd_, out.data(), out.size());
    if (n >= 0) return checked(out.first(static_cast<std::size_t>(n)));
    if (errno != EINTR && errno != EAGAIN)
      throw InputError(fmt::format("cannot read {}: {}", name_, std::strerror(errno)));
  }
}

std::size_t TextInput::checked(std::span<const char> bytes) {
  if (!begun_) {
    const auto refusal = why_no_text({bytes.data(), bytes.size()}, name_);
    if (!refusal.empty()) throw InputError(refusal);
  }
  begun_ = true;
  return bytes.size();
}

std::string TextInput::read_all() {
  std::string out;
  char buffer[1 << 16];
  while (const std::size_t n = read(buffer)) out.append(buffer, n);
  return out;
}

bool TextInput::is_same_file(int fd) const {
  struct stat own {};
  struct stat other {};
  return fstat(fd_, &own) == 0 && fstat(fd, &other) == 0 && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

}  // namespace winnow
