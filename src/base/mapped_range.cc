// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_range.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

namespace winnow {

namespace {

/// Data for a signal handler, without allocations or locks. `end` is set last and cleared first.
struct Slot {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::atomic<const char*> name{nullptr};
};

std::array<Slot, 64> slots;
std::mutex slots_mutex;

}  // namespace

MappedRange::MappedRange(const void* begin, std::size_t size, std::string name) : name_(std::move(name)) {
  const std::lock_guard lock(slots_mutex);
  for (std::size_t i = 0; i < slots.size() && slot_ < 0; ++i) {
    Slot& slot = slots.at(i);
    if (slot.end.load() != 0) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    slot.name.store(name_.c_str());
    slot.begin.store(address);
    slot.end.store(address + size);
    slot_ = static_cast<int>(i);
  }
}

MappedRange::~MappedRange() {
  if (slot_ >= 0) slots.at(static_cast<std::size_t>(slot_)).end.store(0);
}

const char* mapped_at(const void* address) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const Slot& slot : slots) {
    const std::uintptr_t end = slot.end.load();
    if (at < end && at >= slot.begin.load()) return slot.name.load();
  }
  return nullptr;
}

}  // namespace winnow
