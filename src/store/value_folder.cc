// SPDX-License-Identifier: Apache-2.0
// Each value is a file, written under another name and renamed. Its modification time is the time of its last use.
// Values are not synced; readers detect those that a power failure has damaged.
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "base/as_size.h"
#include "base/format.h"
#include "store/stores.h"
#include "winnow/error.h"
#include "winnow/store_error.h"

namespace winnow::store {

namespace {

namespace fs = std::filesystem;

/// Empty file that marks a folder as one of values.
constexpr const char* kMark = "winnow-texts-1";
constexpr const char* kAnyMark = "winnow-texts-";
constexpr const char* kEnding = ".text";
constexpr const char* kPart = ".part";  ///< end of a file that is being written
constexpr std::size_t kKeyDigits = 32;
constexpr mode_t kValueMode = 0600;                                    ///< values are derived from private texts
constexpr std::int64_t kStep = 1000;                                   ///< ns between the uses of two values of a chain
constexpr std::int64_t kOldPart = std::int64_t{3600} * 1'000'000'000;  ///< ns after which its writer must be dead
constexpr std::size_t kSlack = 20;  ///< a 20th of the room is freed at a time, also for other processes

std::int64_t now_ns() {
  using std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::array<timespec, 2> times_of(std::int64_t ns) {
  const timespec at{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  return {at, at};
}

/// Closes its descriptor in the destructor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

class DescriptorSink : public ByteSink {
 public:
  explicit DescriptorSink(int fd) : fd_(fd) {}
  void write(std::span<const std::byte> bytes) override {
    written_ += bytes.size();
    while (!bytes.empty()) {
      const auto done = ::write(fd_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) throw std::system_error(errno, std::generic_category());
      bytes = bytes.subspan(as_size(done));
    }
  }
  std::size_t written() const { return written_; }

 private:
  int fd_;
  std::size_t written_ = 0;
};

/// A value's file in a listing.
struct ValueFile {
  std::string name;
  std::size_t bytes = 0;
  std::int64_t used = 0;  ///< ns since 1970
};

bool is_value(const std::string& name) {
  return name.size() == kKeyDigits + std::strlen(kEnding) && name.ends_with(kEnding) &&
         name.find_first_not_of("0123456789abcdef") == kKeyDigits;
}
bool is_part(const std::string& name) {
  return name.ends_with(kPart) && name.size() > kKeyDigits &&
         name.find_first_not_of("0123456789abcdef") == kKeyDigits && name[kKeyDigits] == '.';
}

class ValueFolder : public Values {
 public:
  ValueFolder(const Place& place, std::size_t most) : place_(place), most_(most) {
    prepare();
    list();
  }

  const std::string& name() const override { return place_.where; }

  std::size_t count(std::span<const std::string> keys) override {
    const auto missing = std::find_if(keys.begin(), keys.end(), [this](const auto& key) {
      return faccessat(AT_FDCWD, path_of(key).c_str(), R_OK, AT_SYMLINK_NOFOLLOW) != 0;
    });
    return as_size(missing - keys.begin());
  }

  std::optional<Lease> get(const std::string& key, std::size_t size) override {
    const Descriptor file(::open(path_of(key).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (file.get() < 0 && errno == ENOENT) return std::nullopt;
    struct stat about {};
    if (file.get() < 0 || fstat(file.get(), &about) != 0) fail("read", errno);
    Lease out{as_size(about.st_size), {}, nullptr, true};
    if (!S_ISREG(about.st_mode) || out.size != size) return out;
    const std::shared_ptr<std::byte[]> bytes(new std::byte[size]);
    for (std::size_t at = 0; at < size;) {
      const auto got = ::read(file.get(), bytes.get() + at, size - at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read", errno);
      if (got == 0) return out;  // cut off meanwhile
      at += as_size(got);
    }
    out.parts.emplace_back(bytes.get(), size);
    out.hold = bytes;
    return out;
  }

  void keep(std::span<const NewValue> chain) override {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = now_ns();
    const auto used = [&](std::size_t i) { return now + static_cast<std::int64_t>(chain.size() - i) * kStep; };
    std::vector<bool> exists(chain.size());
    for (std::size_t i = chain.size(); i-- > 0;) exists[i] = touch(chain[i].key, used(i));
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (exists[i]) continue;
      if (!make_room(chain[i].size, used(i))) return;
      write(chain[i], used(i));
    }
  }

  void erase(const std::string& key) override {
    struct stat about {};
    const auto path = path_of(key);
    if (lstat(path.c_str(), &about) != 0 || unlink(path.c_str()) != 0) return;
    forget(as_size(about.st_size));
  }

  std::optional<ValuesHeld> held() const override {
    const std::lock_guard lock(held_mutex_);
    return held_;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("cannot keep {} in {}: {}", place_.contents, place_.where, why));
  }
  [[noreturn]] void fail(const char* doing, int error) const {
    std::string why = std::strerror(error);
    struct statvfs disk {};
    if (error == ENOSPC && statvfs(place_.where.c_str(), &disk) == 0)
      why += fmt::format(" ({} are free)", format_bytes(disk.f_bavail * disk.f_frsize));
    throw StoreError(fmt::format("cannot {} the {} in {}: {}", doing, place_.contents, place_.where, why));
  }
  std::string path_of(const std::string& key) const { return place_.where + "/" + key + kEnding; }

  void prepare() const {
    std::error_code error;
    if (place_.where.empty()) refuse("the folder's name is empty");
    if (fs::exists(place_.where, error) && !fs::is_directory(place_.where, error)) refuse("it is not a folder");
    make_folder();
    const auto mark = place_.where + "/" + kMark;
    if (fs::exists(mark, error)) return;
    auto first = fs::directory_iterator(place_.where, error);
    if (error) fail("open", error.value());
    for (const auto& entry : first) {
      const auto found = entry.path().filename().string();
      if (found == kMark) return;  // another process was faster
      if (found.starts_with(kAnyMark))
        refuse(fmt::format("it has the format {}, and this program reads {}", found, kMark));
      refuse(fmt::format("it has other files ({}); name an empty folder", found));
    }
    const Descriptor made(::open(mark.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kValueMode));
    if (made.get() < 0) fail("open", errno);
  }
  void make_folder() const {
    constexpr mode_t kPrivate = 0700;
    fs::path made;
    for (const auto& part : fs::path(place_.where)) {
      made /= part;
      std::error_code none;
      if (mkdir(made.c_str(), kPrivate) != 0 && errno != EEXIST && !fs::exists(made, none)) fail("open", errno);
    }
  }

  /// Lists all values, also those of other processes, and removes what killed ones have left.
  std::vector<ValueFile> list() {
    std::vector<ValueFile> out;
    std::error_code error;
    ValuesHeld held;
    for (const auto& entry : fs::directory_iterator(place_.where, error)) {
      const auto name = entry.path().filename().string();
      struct stat about {};
      if (!(is_value(name) || is_part(name)) || lstat(entry.path().c_str(), &about) != 0) continue;
      const auto used = std::int64_t{about.st_mtim.tv_sec} * 1'000'000'000 + about.st_mtim.tv_nsec;
      if (!S_ISREG(about.st_mode)) continue;
      if (is_part(name)) {
        if (now_ns() - used > kOldPart) unlink(entry.path().c_str());
        continue;
      }
      held.bytes += as_size(about.st_size);
      ++held.count;
      out.push_back({name, as_size(about.st_size), used});
    }
    unlisted_ = 0;
    const std::lock_guard lock(held_mutex_);
    held_ = held;
    return out;
  }

  /// Drops the values used least recently, but none used at `used` or later. Returns false if there is no room.
  bool make_room(std::size_t size, std::int64_t used) {
    const auto fits = [&](std::size_t room) { return held()->bytes + size <= room; };
    if (unlisted_ <= most_ / kSlack && fits(most_)) return true;
    auto files = list();
    if (fits(most_)) return true;
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
    for (const auto& file : files) {
      if (fits(most_ - most_ / kSlack) || file.used >= used) break;
      if (unlink((place_.where + "/" + file.name).c_str()) == 0) forget(file.bytes);
    }
    return fits(most_);
  }
  void forget(std::size_t bytes) {
    const std::lock_guard lock(held_mutex_);
    held_.bytes -= std::min(bytes, held_.bytes);
    held_.count -= std::min<std::size_t>(1, held_.count);
  }

  /// Returns false if there is no such value. In a folder that cannot be written, uses are not recorded.
  bool touch(const std::string& key, std::int64_t used) const {
    return utimensat(AT_FDCWD, path_of(key).c_str(), times_of(used).data(), AT_SYMLINK_NOFOLLOW) == 0 ||
           errno != ENOENT;
  }

  void write(const NewValue& value, std::int64_t used) {
    const auto part = fmt::format("{}/{}.{:08x}{}", place_.where, value.key, random_(), kPart);
    const Descriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kValueMode));
    if (file.get() < 0) fail("write", errno);
    try {
      DescriptorSink sink(file.get());
      value.fill(sink);
      if (sink.written() != value.size) throw std::logic_error("a value has not the bytes that were announced");
      if (futimens(file.get(), times_of(used).data()) != 0 ||
          std::rename(part.c_str(), path_of(value.key).c_str()) != 0)
        throw std::system_error(errno, std::generic_category());
    } catch (const std::system_error& error) {
      unlink(part.c_str());
      fail("write", error.code().value());
    }
    unlisted_ += value.size;
    const std::lock_guard lock(held_mutex_);
    held_.bytes += value.size;
    ++held_.count;
  }

  Place place_;
  std::size_t most_;
  std::mutex mutex_;           ///< of keep()
  std::size_t unlisted_ = 0;   ///< bytes written since the last listing
  std::random_device random_;  ///< for names of parts
  mutable std::mutex held_mutex_;
  ValuesHeld held_;
};

}  // namespace

std::unique_ptr<Values> open_value_folder(const Place& place, std::size_t most) {
  return std::make_unique<ValueFolder>(place, most);
}

}  // namespace winnow::store
