// SPDX-License-Identifier: Apache-2.0
#include "hub/lock.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "winnow/error.h"

namespace winnow::hub {

namespace {

constexpr mode_t kForAll = 0666;  // before the umask
constexpr std::chrono::milliseconds kBetweenTries{100};

int open_lock(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kForAll);
  if (fd < 0)
    throw ModelError(
        fmt::format("cannot write {}: {}", path, error ? error.message() : std::string(std::strerror(errno))));
  return fd;
}

}  // namespace

Lock::Lock(const std::string& path, const std::function<void()>& on_wait) : fd_(open_lock(path)) {
  try {
    // Without file locks there is no waiting: downloads are verified anyway.
    while (flock(fd_, LOCK_EX | LOCK_NB) != 0 && (errno == EWOULDBLOCK || errno == EINTR)) {
      on_wait();
      std::this_thread::sleep_for(kBetweenTries);
    }
  } catch (...) {
    close(fd_);
    throw;
  }
}

Lock::~Lock() { close(fd_); }

}  // namespace winnow::hub
