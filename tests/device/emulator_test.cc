// SPDX-License-Identifier: Apache-2.0
#include <ggml.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "device/kernels/primitives.h"
#include "memory.h"
#include "rows.h"

/// Kernels with planted faults, which the emulator must detect, and the same kernels without.
namespace winnow::device::test {
namespace {

struct Shift {
  const float* from;
  float* to;
  int count;
};

/// Each block of 64 threads reverses 64 numbers through shared memory.
template <bool Waits, int Overrun>
void reverse(const Shift task) {
  auto* const all = reinterpret_cast<float*>(shared_memory());
  const int at = block_x() * 64 + thread();
  all[thread()] = task.from[at];
  if constexpr (Waits) sync_block();
  task.to[at + Overrun] = all[63 - thread()];
}

/// Each thread copies four numbers into shared memory, waits for them, and reads its neighbour's.
template <bool WaitsForCopy, bool WaitsForBlock>
void take_neighbours(const Shift task) {
  auto* const all = reinterpret_cast<float*>(shared_memory());
  copy_async(all + thread() * 4, task.from + thread() * 4, true);
  commit_copies();
  if constexpr (WaitsForCopy) wait_copies<0>();
  if constexpr (WaitsForBlock) sync_block();
  for (int i = 0; i < 4; ++i) task.to[thread() * 4 + i] = all[(thread() + 1) % 64 * 4 + i];
}

/// Without the wait, the next tile overwrites one before all threads have read it.
template <bool WaitsForReaders>
void sum_tiles(const Shift task) {
  auto* const all = reinterpret_cast<float*>(shared_memory());
  float sum = 0;
  for (int tile = 0; tile < task.count; ++tile) {
    copy_async(all + thread() * 4, task.from + (tile * 64 + thread()) * 4, true);
    commit_copies();
    wait_copies<0>();
    sync_block();
    sum += all[(thread() + 32) % 64 * 4];
    if constexpr (WaitsForReaders) sync_block();
  }
  task.to[thread()] = sum;
}

void part(const Shift task) {
  if (thread() < 32) sync_block();
  if (thread() >= 32) task.to[0] = shuffle_xor(1.0F, thread() == 40 ? 1 : 2);
}

void overrun_shared(const Shift /*task*/) { reinterpret_cast<float*>(shared_memory())[64 + thread()] = 1; }

std::vector<float> counted(int n) {
  std::vector<float> out(z(n));
  std::iota(out.begin(), out.end(), 0.0F);
  return out;
}

/// Whether a kernel gives the right result in all orders.
template <auto Kernel>
bool is_right(int threads_numbers, const std::vector<float>& want, int tiles = 1) {
  bool right = true;
  in_several_orders([&] {
    const Array<float> from(counted(threads_numbers));
    const Array<float> to(want.size());
    launch<Kernel>(Grid{1, 1, 64, 1024}, nullptr, Shift{from.address(), to.address(), tiles});
    right = right && to.read() == want;
  });
  return right;
}

TEST(Emulator, finds_a_missing_barrier) {
  std::vector<float> want = counted(64);
  std::reverse(want.begin(), want.end());
  EXPECT_TRUE((is_right<reverse<true, 0>>(64, want)));
  EXPECT_FALSE((is_right<reverse<false, 0>>(64, want)));
}

TEST(Emulator, finds_a_copy_that_is_read_too_early) {
  std::vector<float> want = counted(256);
  std::rotate(want.begin(), want.begin() + 4, want.end());
  EXPECT_TRUE((is_right<take_neighbours<true, true>>(256, want)));
  EXPECT_FALSE((is_right<take_neighbours<false, true>>(256, want)));
  EXPECT_FALSE((is_right<take_neighbours<true, false>>(256, want)));
}

TEST(Emulator, finds_a_tile_that_is_overwritten_too_early) {
  std::vector<float> want(64);
  for (int i = 0; i < 64; ++i) {
    for (int tile = 0; tile < 3; ++tile) want[z(i)] += static_cast<float>((tile * 64 + (i + 32) % 64) * 4);
  }
  EXPECT_TRUE((is_right<sum_tiles<true>>(768, want, 3)));
  EXPECT_FALSE((is_right<sum_tiles<false>>(768, want, 3)));
}

TEST(EmulatorDeathTest, stops_at_an_overrun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Array<float> from(counted(64));
  const Array<float> to(64);
  const Shift task{from.address(), to.address(), 1};
  EXPECT_DEATH((launch<reverse<true, 1>>(Grid{1, 1, 64, 256}, nullptr, task)), "");
  EXPECT_DEATH((launch<reverse<true, 0>>(Grid{2, 1, 64, 256}, nullptr, task)), "");
  EXPECT_DEATH((launch<overrun_shared>(Grid{1, 1, 64, 256}, nullptr, task)), "");
}

TEST(EmulatorDeathTest, stops_where_threads_wait_at_different_barriers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Array<float> to(64);
  EXPECT_DEATH(launch<part>(Grid{1, 1, 64, 256}, nullptr, Shift{nullptr, to.address(), 1}), "different barriers");
}

TEST(EmulatorDeathTest, takes_only_addresses_that_a_gpu_takes) {
  const Array<float> from(counted(8));
  EXPECT_DEATH((void)load16(from.address() + 1), "not a multiple");
}

TEST(Emulator, rounds_numbers_as_ggml_does) {
  for (std::uint32_t h = 0; h < 0x10000U; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    const float want = ggml_fp16_to_fp32(half);
    const float got = emulated::from_f16(half);
    ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << h;
    if (std::isnan(want)) continue;
    for (const float x : {want, want * 1.0004F, std::nextafter(want * (1 + 0x1p-11F), 0.0F), want * (1 + 0x1p-11F)}) {
      ASSERT_EQ(emulated::f16_of(x), ggml_fp32_to_fp16(x)) << x;
      ASSERT_EQ(emulated::bf16_of(x), ggml_fp32_to_bf16(x).bits) << x;
    }
  }
}

}  // namespace
}  // namespace winnow::device::test
