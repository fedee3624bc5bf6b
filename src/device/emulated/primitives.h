// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "device/emulated/block.h"
#include "device/emulated/numbers.h"

#define WINNOW_DEVICE inline
#define WINNOW_KERNEL(threads) void
#define WINNOW_UNROLL
#define WINNOW_UNROLL_BY(n)

namespace winnow::device {

using emulated::block_x;
using emulated::block_y;
using emulated::blocks_x;
using emulated::Grid;
using emulated::shared_memory;
using emulated::thread;

inline void sync_block() { emulated::wait_for_block(); }
inline void raise_flag(std::int32_t* flag) { *flag = 1; }
float shuffle_xor(float v, int lanes);
std::uint32_t shuffle_xor(std::uint32_t v, int lanes);

inline float exp2(float x) { return std::exp2(x); }
inline float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline float infinity() { return std::numeric_limits<float>::infinity(); }
inline float log2(float x) { return std::log2(x); }
inline float divide(float x, float y) { return x / y; }

struct alignas(16) Words {
  std::uint32_t w[4];
};
struct alignas(8) HalfWords {
  std::uint32_t w[2];
};
struct alignas(16) Floats {
  float x[4];
};
/// Loads with a GPU's alignment rule: addresses must be multiples of the size.
Floats load_floats(const float* from);
Words load16(const void* from);
HalfWords load8(const void* from);
std::uint32_t load2(const void* from);
std::uint32_t load4(const void* from);
std::uint32_t bytes_of(std::uint32_t a, std::uint32_t b, std::uint32_t which);

using SharedAddress = std::uintptr_t;
inline SharedAddress address_of(const void* shared) { return reinterpret_cast<SharedAddress>(shared); }
void load_matrices(std::uint32_t (&r)[4], SharedAddress row);
void load_transposed(std::uint32_t (&r)[4], SharedAddress row);

void copy_async(void* to, const void* from, bool there);
inline void commit_copies() { emulated::commit(); }
template <int N>
void wait_copies() {
  emulated::wait_but(N);
}

struct Bf16 {
  static std::uint32_t pack(float low, float high) {
    return emulated::bf16_of(low) | static_cast<std::uint32_t>(emulated::bf16_of(high)) << 16U;
  }
  static float low(std::uint32_t u) { return std::bit_cast<float>(u << 16U); }
  static float high(std::uint32_t u) { return std::bit_cast<float>(u & 0xffff0000U); }
  static void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
};

struct F16 {
  static std::uint32_t pack(float low, float high) {
    return emulated::f16_of(low) | static_cast<std::uint32_t>(emulated::f16_of(high)) << 16U;
  }
  static float low(std::uint32_t u) { return emulated::from_f16(static_cast<std::uint16_t>(u)); }
  static float high(std::uint32_t u) { return emulated::from_f16(static_cast<std::uint16_t>(u >> 16U)); }
  static void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
  static std::uint32_t minus(std::uint32_t x, std::uint32_t y) { return pack(low(x) - low(y), high(x) - high(y)); }
  static std::uint32_t times(std::uint32_t x, std::uint32_t y) { return pack(low(x) * low(y), high(x) * high(y)); }
};

template <auto Kernel, class Task>
const char* launch(const Grid& grid, void* /*stream*/, const Task& task) {
  if (grid.x > 0 && grid.y > 0) emulated::run(grid, [&] { Kernel(task); });
  return nullptr;
}

}  // namespace winnow::device
