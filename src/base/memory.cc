// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/process_memory.h"
#include "winnow/error.h"

namespace winnow {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;
constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

std::size_t read_number(const char* path) {
  std::ifstream file(path);
  std::size_t value = 0;
  return file >> value ? value : kUnlimited;  // "max" is not a number
}

std::size_t left(std::size_t limit, std::size_t used) {
  if (limit == kUnlimited || used == kUnlimited) return kUnlimited;
  return limit > used ? limit - used : 0;
}

std::size_t machine_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::size_t kib = 0;
  std::string unit;
  while (file >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return kUnlimited;
}

/// Returns null if there is no memory. Requests huge pages for large blocks: lanes and probabilities are read and
/// written sequentially, and each small memory page would cost an address translation and interrupt prefetching.
std::byte* allocate(std::size_t bytes) {
  const bool is_large = bytes >= kHugePage;
  void* out = nullptr;
  if (posix_memalign(&out, is_large ? kHugePage : kAlignment, bytes) != 0) return nullptr;
  if (is_large) madvise(out, bytes, MADV_HUGEPAGE);  // only a hint
  return static_cast<std::byte*>(out);
}

/// Returns whole memory pages to the system at once; a heap would keep those below memory in use.
void release(std::byte* data, std::size_t bytes) {
  constexpr std::size_t kFew = std::size_t{64} << 10U;
  if (bytes >= kFew) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(data) % page) % page;
    madvise(data + before, (bytes - before) / page * page, MADV_DONTNEED);
  }
  std::free(data);
}

std::size_t address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnlimited;
  return left(limit.rlim_cur, address_bytes());
}

}  // namespace

MemoryAccount* current_account() { return CountingScope::current(); }

void count_bytes(MemoryAccount* account, std::size_t bytes) {
  if (account != nullptr) account->add(bytes);
}

void uncount_bytes(MemoryAccount* account, std::size_t bytes) {
  if (account != nullptr) account->remove(bytes);
}

void MemoryAccount::add(std::size_t bytes) {
  const std::size_t now = held_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  if (parent_ != nullptr) parent_->add(bytes);
}

void MemoryAccount::remove(std::size_t bytes) {
  held_.fetch_sub(bytes, std::memory_order_relaxed);
  if (parent_ != nullptr) parent_->remove(bytes);
}

Buffer::Buffer(MemoryAccount& account, std::size_t bytes, const char* purpose) : size_(bytes), account_(&account) {
  if (bytes == 0) return;
  // Linux overcommits and kills the process later, so large requests are first compared with the available memory.
  constexpr std::size_t kLarge = std::size_t{64} << 20U;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded >= bytes && (bytes < kLarge || bytes <= available_memory())) {
    data_ = allocate(rounded);
  }
  if (data_ == nullptr) {
    throw MemoryError(fmt::format("cannot allocate {} for {} ({} available)", format_bytes(bytes), purpose,
                                  format_bytes(available_memory())),
                      bytes);
  }
  account.add(bytes);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), account_(other.account_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(account_, other.account_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ == nullptr) return;
  release(data_, size_);
  account_->remove(size_);
}

std::size_t available_memory() {
  return std::min({machine_memory(), address_space(),
                   left(read_number("/sys/fs/cgroup/memory.max"), read_number("/sys/fs/cgroup/memory.current")),
                   left(read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
                        read_number("/sys/fs/cgroup/memory/memory.usage_in_bytes"))});
}

}  // namespace winnow
