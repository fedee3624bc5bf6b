// SPDX-License-Identifier: Apache-2.0
#include "store/marked_folder.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/format.h"
#include "winnow/error.h"
#include "winnow/store_error.h"

namespace winnow::store {

namespace {

namespace fs = std::filesystem;

constexpr mode_t kPrivateFolder = 0700;
constexpr mode_t kPrivateFile = 0600;

/// Creates a folder. Returns the error code of the system, 0 if it exists now.
int make_folder(const fs::path& path) {
  if (mkdir(path.c_str(), kPrivateFolder) == 0) return 0;
  const int error = errno;
  std::error_code none;
  return error == EEXIST || fs::exists(path, none) ? 0 : error;
}

}  // namespace

MarkedFolder::MarkedFolder(Place place, std::string mark)
    : place_(std::move(place)), root_(fs::absolute(place_.where).string()), mark_(std::move(mark)) {}

bool MarkedFolder::exists() const {
  struct stat about {};
  if (stat(mark().c_str(), &about) == 0) return S_ISREG(about.st_mode);
  if (errno == ENOTDIR) refuse("it is not a folder");
  if (errno != ENOENT) fail("open", errno);
  const auto any_version = std::string_view(mark_).substr(0, mark_.rfind('-') + 1);
  std::error_code error;
  for (fs::directory_iterator at(root_, error), end; !error && at != end; at.increment(error)) {
    const auto name = at->path().filename().string();
    if (name.starts_with(any_version) && name != mark_)
      refuse(fmt::format("it has the format {}, and this program reads {}", name, mark_));
  }
  return false;
}

void MarkedFolder::create() const {
  fs::path made;
  for (const auto& part : fs::path(root_)) {
    made /= part;
    if (const int error = make_folder(made); error != 0) fail("open", error);
  }
  std::error_code error;
  for (fs::directory_iterator at(root_, error), end; !error && at != end; at.increment(error)) {
    if (exists()) return;  // another process was faster: the mark is the first file that it creates
    refuse(fmt::format("it has other files ({}); name an empty folder", at->path().filename().string()));
  }
  if (error) fail("open", error.value());
  const int fd = ::open(mark().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kPrivateFile);
  if (fd < 0) fail("open", errno);
  close(fd);
}

void MarkedFolder::create_inner(std::string_view name) const {
  if (const int error = make_folder(path_of(name)); error != 0) fail("open", error);
}

void MarkedFolder::refuse(const std::string& why) const {
  throw UsageError(fmt::format("cannot keep {} in {}: {}", place_.contents, place_.where, why));
}

void MarkedFolder::fail(const std::string& doing, int error) const {
  std::string why = std::strerror(error);
  struct statvfs disk {};
  if (error == ENOSPC && statvfs(root_.c_str(), &disk) == 0)
    why += fmt::format(" ({} are free)", format_bytes(disk.f_bavail * disk.f_frsize));
  throw StoreError(fmt::format("cannot {} the {} in {}: {}", doing, place_.contents, place_.where, why));
}

}  // namespace winnow::store
