// SPDX-License-Identifier: Apache-2.0
#include "device/emulated/primitives.h"

#include <cstdio>
#include <cstdlib>

namespace winnow::device {
namespace {

template <class T>
std::span<const emulated::Slot> share(const T& mine) {
  static_assert(sizeof(T) <= emulated::kMostShared);
  return emulated::exchange(std::as_bytes(std::span(&mine, 1)));
}

template <class T>
T of_lane(std::span<const emulated::Slot> all, int lane) {
  T value;
  std::memcpy(&value, all[static_cast<std::size_t>(lane)].data(), sizeof(T));
  return value;
}

template <class T>
T aligned(const void* from) {
  if (reinterpret_cast<std::uintptr_t>(from) % sizeof(T) != 0) {
    std::fprintf(stderr, "an address of %zu bytes that is not a multiple of them\n", sizeof(T));
    std::abort();
  }
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

/// Element (i, j) of matrix m is in half e = j % 2 of register m of lane 4 i + j / 2; transposed, i and j are swapped.
template <bool Transposed>
void load(std::uint32_t (&r)[4], SharedAddress address) {
  // Addresses are integers, since kernels do arithmetic with them.
  const auto* const row = reinterpret_cast<const void*>(address);  // NOLINT(performance-no-int-to-ptr)
  (void)aligned<Words>(row);
  const auto all = share(row);
  const int lane = thread() % emulated::kWarp;
  for (int m = 0; m < 4; ++m) {
    std::uint32_t halves[2];
    for (int e = 0; e < 2; ++e) {
      const int i = Transposed ? lane % 4 * 2 + e : lane / 4;
      const int j = Transposed ? lane / 4 : lane % 4 * 2 + e;
      halves[e] = static_cast<const std::uint16_t*>(of_lane<const void*>(all, m * 8 + i))[j];
    }
    r[m] = halves[0] | halves[1] << 16U;
  }
}

/// A lane's fragments of both factors: pairs of numbers, which each lane unpacks once for all.
struct Fragments {
  float a[4][2];
  float b[2][2];
};

/// Products are exact in f32 except for the order of the sum, which GPUs do not guarantee either.
template <class T>
void product(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  const auto all = share(Fragments{{{T::low(a[0]), T::high(a[0])},
                                    {T::low(a[1]), T::high(a[1])},
                                    {T::low(a[2]), T::high(a[2])},
                                    {T::low(a[3]), T::high(a[3])}},
                                   {{T::low(b0), T::high(b0)}, {T::low(b1), T::high(b1)}}});
  const int lane = thread() % emulated::kWarp;
  for (int k = 0; k < 16; k += 2) {
    const auto left = of_lane<Fragments>(all, lane / 4 * 4 + k % 8 / 2);
    for (int j = 0; j < 2; ++j) {
      const auto right = of_lane<Fragments>(all, (lane % 4 * 2 + j) * 4 + k % 8 / 2);
      for (int i = 0; i < 2; ++i) {
        for (int half = 0; half < 2; ++half) c[2 * i + j] += left.a[k / 8 * 2 + i][half] * right.b[k / 8][half];
      }
    }
  }
}

}  // namespace

float shuffle_xor(float v, int lanes) { return of_lane<float>(share(v), thread() % emulated::kWarp ^ lanes); }
std::uint32_t shuffle_xor(std::uint32_t v, int lanes) {
  return of_lane<std::uint32_t>(share(v), thread() % emulated::kWarp ^ lanes);
}

Floats load_floats(const float* from) { return aligned<Floats>(from); }
Words load16(const void* from) { return aligned<Words>(from); }
HalfWords load8(const void* from) { return aligned<HalfWords>(from); }
std::uint32_t load2(const void* from) { return aligned<std::uint16_t>(from); }
std::uint32_t load4(const void* from) { return aligned<std::uint32_t>(from); }

std::uint32_t bytes_of(std::uint32_t a, std::uint32_t b, std::uint32_t which) {
  const std::uint64_t both = a | static_cast<std::uint64_t>(b) << 32U;
  std::uint32_t out = 0;
  for (unsigned i = 0; i < 4; ++i)
    out |= static_cast<std::uint32_t>(both >> (which >> 4 * i & 7U) * 8U & 255U) << 8 * i;
  return out;
}

void load_matrices(std::uint32_t (&r)[4], SharedAddress row) { load<false>(r, row); }
void load_transposed(std::uint32_t (&r)[4], SharedAddress row) { load<true>(r, row); }

void copy_async(void* to, const void* from, bool there) {
  if (there) (void)aligned<Words>(from);
  emulated::copy(to, from, there);
}

void Bf16::multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  product<Bf16>(c, a, b0, b1);
}
void F16::multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  product<F16>(c, a, b0, b1);
}

}  // namespace winnow::device
