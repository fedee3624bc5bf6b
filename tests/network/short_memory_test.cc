// SPDX-License-Identifier: Apache-2.0
// oneDNN kernels whose creation fails for lack of memory can be created afterwards.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "base/memory.h"
#include "network/linear.h"
#include "winnow/error.h"

namespace {

/// Number of allocations that succeed before one fails; negative: none fails.
thread_local long until_failure = -1;

}  // namespace

// Replaces the operator for the library's calls too.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const out = until_failure == 0 ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (until_failure >= 0) --until_failure;
  if (out == nullptr) throw std::bad_alloc();
  return out;
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t /*size*/) noexcept { ::operator delete(at); }

namespace winnow {
namespace {

/// Requests a kernel while allocation `number` fails. Returns whether there was such an allocation.
bool fails_at(long number, network::Bf16Kernels& kernels, const network::Bf16Kernel::Shape& shape) {
  until_failure = number;
  try {
    kernels.get(shape, 0);
  } catch (const std::bad_alloc&) {
  } catch (const MemoryError&) {
  }
  const bool has_failed = until_failure < 0;
  until_failure = -1;
  return has_failed;
}

TEST(ShortMemory, takes_no_kernel_away_for_good) {
  if (!network::Bf16Kernel::available()) GTEST_SKIP() << "this build or machine has no bf16 products";
  const network::Bf16Kernel::Shape shape{16, 96, 64};
  long number = 0;
  for (;; ++number) {
    MemoryAccount account;
    network::Bf16Kernels kernels(account, 1);
    const bool has_failed = fails_at(number, kernels, shape);
    ASSERT_NE(kernels.get(shape, 0), nullptr) << "after allocation " << number << " had failed";
    if (!has_failed) break;
  }
  EXPECT_GT(number, 10);
}

}  // namespace
}  // namespace winnow
