// SPDX-License-Identifier: Apache-2.0
#include "store/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "base/as_size.h"

namespace winnow::store {

namespace {

constexpr mode_t kOwnerOnly = 0600;  ///< stores contain private texts, and values derived from them
constexpr std::size_t kAlignment = alignof(std::max_align_t);
constexpr std::size_t kSyncThreads = 4;
constexpr std::int64_t kSecond = 1'000'000'000;

[[noreturn]] void fail() { throw std::system_error(errno, std::generic_category()); }

std::size_t aligned(std::size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Descriptor::Descriptor(int fd) : fd_(fd) {
  if (fd < 0) fail();
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

std::optional<OpenFile> OpenFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);  // a pipe must not block
  if (fd < 0 && (errno == ENOENT || errno == ELOOP)) return std::nullopt;
  Descriptor file(fd);
  struct stat about {};
  if (fstat(file.get(), &about) != 0) fail();
  if (!S_ISREG(about.st_mode)) return std::nullopt;
  return OpenFile(std::move(file), as_size(about.st_size));
}

bool OpenFile::is_at(const std::string& path) const {
  struct stat here {};
  struct stat there {};
  if (fstat(file_.get(), &here) != 0 || lstat(path.c_str(), &there) != 0) return false;
  return here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

void OpenFile::will_be_read() const { posix_fadvise(file_.get(), 0, 0, POSIX_FADV_WILLNEED); }

std::size_t OpenFile::read_at(std::size_t begin, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const auto left = out.subspan(done);
    const auto got = pread(file_.get(), left.data(), left.size(), static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail();
    if (got == 0) break;
    done += as_size(got);
  }
  return done;
}

Lease OpenFile::read(std::span<const ByteRange> ranges) const {
  std::size_t bytes = 0;
  for (const auto& range : ranges) bytes += aligned(length_in(range, size_));
  const std::shared_ptr<std::byte[]> buffer(new std::byte[bytes]);
  Lease out{size_, {}, buffer};
  std::size_t at = 0;
  for (const auto& range : ranges) {
    const std::span part(buffer.get() + at, length_in(range, size_));
    out.parts.push_back(part.first(read_at(range.begin, part)));
    at += aligned(part.size());
  }
  return out;
}

Bytes OpenFile::read_all() const {
  Bytes out(size_);
  out.resize(read_at(0, out));
  return out;
}

PartFile::PartFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnly)) {}

PartFile::~PartFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

void PartFile::write(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  while (!bytes.empty()) {
    const auto done = ::write(file_.get(), bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail();
    bytes = bytes.subspan(as_size(done));
  }
}

void write_to(const std::string& path, std::size_t at, std::span<const std::byte> bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  while (!bytes.empty()) {
    const auto done = pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail();
    bytes = bytes.subspan(as_size(done));
    at += as_size(done);
  }
}

void PartFile::set_times(std::int64_t ns) const {
  if (futimens(file_.get(), file_times(ns).data()) != 0) fail();
}

void PartFile::rename_to(const std::string& path) {
  if (std::rename(path_.c_str(), path.c_str()) != 0) fail();
  keep();
}

std::array<timespec, 2> file_times(std::int64_t ns) {
  const timespec at{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  return {at, at};
}

Descriptor open_folder(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

void sync_all(std::span<const int> descriptors) {
  std::atomic<std::size_t> next{0};
  std::atomic<int> error{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < descriptors.size(); i = next++) {
      if (fsync(descriptors[i]) != 0 && errno != EINVAL) error = errno;  // EINVAL: a folder that cannot be synced
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 1; i < std::min(kSyncThreads, descriptors.size()); ++i) threads.emplace_back(work);
    } catch (const std::system_error&) {
      // Fewer threads do the same work.
    }
    work();
  }
  if (error != 0) throw std::system_error(error, std::generic_category());
}

}  // namespace winnow::store
