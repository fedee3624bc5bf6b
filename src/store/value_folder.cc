// SPDX-License-Identifier: Apache-2.0
// Each value is a file, written under another name and renamed. Its modification time is the time of its last use.
// Values are not synced; readers detect those that a power failure has damaged.
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "base/as_size.h"
#include "store/files.h"
#include "store/marked_folder.h"
#include "store/stores.h"

namespace winnow::store {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTextsMark = "winnow-texts-1";
constexpr const char* kEnding = ".text";
constexpr const char* kPart = ".part";  ///< end of a file that is being written
constexpr std::size_t kKeyDigits = 32;
constexpr std::int64_t kStep = 1000;                                   ///< ns between the uses of two values of a chain
constexpr std::int64_t kOldPart = std::int64_t{3600} * 1'000'000'000;  ///< ns after which its writer must be dead
constexpr std::int64_t kFuture = kOldPart;  ///< ns; a later use is of a time when the clock was ahead
constexpr std::size_t kSlack = 20;          ///< a 20th of the room is freed at a time, also for other processes

std::int64_t now_ns() {
  using std::chrono::nanoseconds;
  return std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

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

/// A part of a value, opened for each write: a text has more blocks than a process may have open files.
class FolderPart : public ValuePart {
 public:
  /// `pending`: bytes of all such parts.
  FolderPart(const MarkedFolder& folder, std::string path, std::size_t size, std::atomic<std::size_t>& pending)
      : folder_(folder), path_(std::move(path)), size_(size), pending_(pending) {
    attempt([this] { PartFile(path_).keep(); });
    pending_ += size_;
  }
  FolderPart(const FolderPart&) = delete;
  FolderPart& operator=(const FolderPart&) = delete;
  ~FolderPart() override {
    if (path_.empty()) return;
    unlink(path_.c_str());
    pending_ -= size_;
  }

  void write(std::size_t at, std::span<const std::byte> bytes) override {
    attempt([&] { write_to(path_, at, bytes); });
  }
  void rename_to(const std::string& path, std::int64_t used) {
    if (utimensat(AT_FDCWD, path_.c_str(), file_times(used).data(), AT_SYMLINK_NOFOLLOW) != 0 ||
        std::rename(path_.c_str(), path.c_str()) != 0)
      folder_.fail("write", errno);
    path_.clear();
    pending_ -= size_;
  }

 private:
  template <typename Work>
  void attempt(Work work) const {
    try {
      work();
    } catch (const std::system_error& error) {
      folder_.fail("write", error.code().value());
    }
  }

  MarkedFolder folder_;
  std::string path_;  ///< empty: stored
  std::size_t size_;
  std::atomic<std::size_t>& pending_;
};

class ValueFolder : public Values {
 public:
  ValueFolder(const Place& place, std::size_t most) : folder_(place, kTextsMark), most_(most) {
    if (!folder_.exists()) folder_.create();
    list();
  }

  const std::string& name() const override { return folder_.place().where; }

  std::vector<bool> exist(std::span<const std::string> keys) override {
    std::vector<bool> out;
    for (const auto& key : keys)
      out.push_back(faccessat(AT_FDCWD, path_of(key).c_str(), R_OK, AT_SYMLINK_NOFOLLOW) == 0);
    return out;
  }

  std::optional<Lease> get(const std::string& key, std::size_t size) override { return get_part(key, size, kWhole); }

  std::size_t room_for_parts() const override { return most_; }

  std::unique_ptr<ValuePart> begin(const std::string& key, std::size_t size) override {
    if (pending_ + size > most_) return nullptr;
    return std::make_unique<FolderPart>(folder_, part_path(key), size, pending_);
  }

  std::optional<Lease> get_part(const std::string& key, std::size_t size, const ByteRange& range) override {
    try {
      const auto file = OpenFile::open(path_of(key));
      if (!file) return std::nullopt;
      if (file->size() != size) return Lease{file->size(), {}, nullptr};
      if (range.begin == 0 && range.end < size) file->will_be_read();
      Lease out = file->read(std::span(&range, 1));
      if (out.parts.front().size() != length_in(range, size)) out.parts.clear();  // cut off meanwhile
      return out;
    } catch (const std::system_error& error) {
      if (error.code().value() == EIO) return Lease{size, {}, nullptr};  // damaged on the disk; other values are not
      folder_.fail("read", error.code().value());
    }
  }

  void keep(std::span<const NewValue> chain) override {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = now_ns();
    const auto used = [&](std::size_t i) { return now + static_cast<std::int64_t>(chain.size() - i) * kStep; };
    std::vector<bool> exists(chain.size());
    for (std::size_t i = chain.size(); i-- > 0;) exists[i] = touch(chain[i].key, used(i));
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (exists[i]) continue;
      const bool is_new = chain[i].fill || chain[i].part != nullptr;
      if (!is_new || !make_room(chain[i].size, used(i))) return;
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
  std::string path_of(const std::string& key) const { return folder_.path_of(key + kEnding); }

  /// Lists all values, also those of other processes, and removes what killed ones have left an hour ago. Until then it
  /// takes room.
  std::vector<ValueFile> list() {
    std::vector<ValueFile> out;
    std::error_code error;
    ValuesHeld held;
    std::size_t parts = 0;  // bytes
    const std::int64_t now = now_ns();
    for (fs::directory_iterator at(folder_.path_of(""), error), end; !error && at != end; at.increment(error)) {
      const auto name = at->path().filename().string();
      struct stat about {};
      if (!(is_value(name) || is_part(name)) || lstat(at->path().c_str(), &about) != 0) continue;
      auto used = std::int64_t{about.st_mtim.tv_sec} * 1'000'000'000 + about.st_mtim.tv_nsec;
      if (!S_ISREG(about.st_mode)) continue;
      if (is_part(name)) {
        parts += as_size(about.st_size);
        if (now - used > kOldPart && unlink(at->path().c_str()) == 0) parts -= as_size(about.st_size);
        continue;
      }
      if (used > now + kFuture) used = 0;
      held.bytes += as_size(about.st_size);
      ++held.count;
      out.push_back({name, as_size(about.st_size), used});
    }
    if (error) folder_.fail("list", error.value());
    held.bytes += parts - std::min<std::size_t>(parts, pending_);
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
      if (unlink(folder_.path_of(file.name).c_str()) == 0) forget(file.bytes);
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
    return utimensat(AT_FDCWD, path_of(key).c_str(), file_times(used).data(), AT_SYMLINK_NOFOLLOW) == 0 ||
           errno != ENOENT;
  }

  void write(const NewValue& value, std::int64_t used) {
    if (value.part != nullptr) {
      static_cast<FolderPart*>(value.part)->rename_to(path_of(value.key), used);
    } else {
      write_whole(value, used);
    }
    unlisted_ += value.size;
    const std::lock_guard lock(held_mutex_);
    held_.bytes += value.size;
    ++held_.count;
  }

  void write_whole(const NewValue& value, std::int64_t used) {
    try {
      PartFile file(part_path(value.key));
      value.fill(file);
      if (file.written() != value.size) throw std::logic_error("a value has not the bytes that were announced");
      file.set_times(used);
      file.rename_to(path_of(value.key));
    } catch (const std::system_error& error) {
      folder_.fail("write", error.code().value());
    }
  }

  std::string part_path(const std::string& key) {
    return folder_.path_of(fmt::format("{}.{:08x}{}", key, std::random_device()(), kPart));
  }

  MarkedFolder folder_;
  std::size_t most_;
  std::mutex mutex_;                     ///< of keep()
  std::size_t unlisted_ = 0;             ///< bytes written since the last listing
  std::atomic<std::size_t> pending_{0};  ///< bytes of parts that this process has begun
  mutable std::mutex held_mutex_;
  ValuesHeld held_;
};

}  // namespace

std::unique_ptr<Values> open_value_folder(const Place& place, std::size_t most) {
  return std::make_unique<ValueFolder>(place, most);
}

}  // namespace winnow::store
