// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

/// A GPU's block of threads on the CPU: each thread is a fiber. Warps run in an order that a seed gives, each as far as
/// it gets, and a copy into shared memory lands when it is begun or when it is waited for, by the seed. So a missing
/// barrier or wait lets a kernel compute something wrong, which it would not if all threads ran in one order.
namespace winnow::device::emulated {

inline constexpr int kWarp = 32;

/// The orders of all blocks to come.
void set_seed(std::uint32_t seed);

struct Grid {
  int x, y, threads, shared;
};
/// Runs all blocks of a launch, one after the other. Aborts where threads of a block wait at different barriers.
/// Shared memory begins as NaN, and a page that nobody may touch follows it.
void run(const Grid& grid, const std::function<void()>& kernel);

/// Numbers of the fiber that runs.
int thread();
int block_x();
int block_y();
int blocks_x();
unsigned char* shared_memory();

void wait_for_block();

/// Gives each lane of the warp `mine`, and gets those of all; they are valid until the exchange after the next.
inline constexpr std::size_t kMostShared = 32;
using Slot = std::array<std::byte, kMostShared>;
std::span<const Slot> exchange(std::span<const std::byte> mine);

/// Copies of 16 bytes, of the fiber that runs.
void copy(void* to, const void* from, bool there);
void commit();
void wait_but(int commits);

}  // namespace winnow::device::emulated
