// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "device/emulated/block.h"
#include "memory.h"

namespace winnow::device::test {
namespace {

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
std::size_t whole_pages(std::size_t bytes) { return (bytes + page() - 1) / page() * page(); }

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes) : bytes_(bytes) {
  const std::size_t pages = whole_pages(bytes);
  void* const base = mmap(nullptr, pages + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<std::byte*>(base);
  mprotect(base_ + pages, page(), PROT_NONE);
  address_ = base_ + pages - bytes;
}

DeviceMemory::~DeviceMemory() { munmap(base_, whole_pages(bytes_) + page()); }

void DeviceMemory::upload(std::span<const std::byte> from) { std::copy(from.begin(), from.end(), address_); }
void DeviceMemory::download(std::span<std::byte> to) const { std::copy_n(address_, to.size(), to.begin()); }

void in_several_orders(const std::function<void()>& test) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    emulated::set_seed(seed);
    test();
    if (testing::Test::HasFailure()) return;  // other orders would only repeat the failure
  }
}

}  // namespace winnow::device::test
