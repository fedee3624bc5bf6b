// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

/// A GPU's thread block on the CPU, with a fiber for each thread. Warps run as far as they can, in an order given by a
/// seed; a copy into shared memory completes when it begins or when it is waited for, also by the seed. Thus a missing
/// barrier or wait causes wrong results, which a fixed order of threads would hide. Each thread of the CPU has an
/// emulator of its own.
namespace winnow::device::emulated {

inline constexpr int kWarp = 32;

/// Sets the seed for the orders of all later blocks.
void set_seed(std::uint32_t seed);

struct Grid {
  int x, y, threads, shared;
};
/// Runs all blocks of a launch, one after the other. Aborts if threads of a block wait at different barriers. Shared
/// memory is initialised with NaN and followed by a guard page.
void run(const Grid& grid, const std::function<void()>& kernel);

/// Indices of the running fiber, and its block's memory.
struct Place {
  int thread, block_x, block_y, blocks_x;
  unsigned char* shared;
};
inline constinit thread_local Place here{};

inline int thread() { return here.thread; }
inline int block_x() { return here.block_x; }
inline int block_y() { return here.block_y; }
inline int blocks_x() { return here.blocks_x; }
inline unsigned char* shared_memory() { return here.shared; }

void wait_for_block();

/// Exchanges a value between all lanes of the warp. The results are valid until the exchange after the next.
inline constexpr std::size_t kMostShared = 48;
using Slot = std::array<std::byte, kMostShared>;
std::span<const Slot> exchange(std::span<const std::byte> mine);

/// Asynchronous copies of 16 bytes by the current fiber.
void copy(void* to, const void* from, bool there);
void commit();
void wait_but(int commits);

}  // namespace winnow::device::emulated
