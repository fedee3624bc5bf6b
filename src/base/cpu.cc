// SPDX-License-Identifier: Apache-2.0
#include "base/cpu.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include <array>
#include <span>

#include "base/hash.h"

namespace winnow {

#if defined(__x86_64__) && defined(__linux__)

namespace {

struct Leaf {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

/// Zeros if the processor does not have the leaf.
Leaf cpuid(unsigned leaf, unsigned part) {
  Leaf l;
  __get_cpuid_count(leaf, part, &l.a, &l.b, &l.c, &l.d);
  return l;
}

constexpr bool bit(unsigned word, int number) { return (word >> number & 1) != 0; }

/// True if the system saves all of these parts of the processor's state.
bool saves(std::uint64_t parts) {
  constexpr int kOsUsesXsave = 27;
  if (!bit(cpuid(1, 0).c, kOsUsesXsave)) return false;
  unsigned low = 0;
  unsigned high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  const std::uint64_t saved = std::uint64_t{high} << 32 | low;
  return (saved & parts) == parts;
}

constexpr std::uint64_t kAvx512State = 0xe6;  // SSE, AVX, masks, upper halves, upper registers
constexpr std::uint64_t kTileState = 0x60000;

bool has_avx512_bf16() {
  const Leaf features = cpuid(7, 0);
  const bool avx512 =
      bit(features.b, 16) && bit(features.b, 17) && bit(features.b, 30) && bit(features.b, 31);  // F, DQ, BW, VL
  return avx512 && bit(cpuid(7, 1).a, 5) && saves(kAvx512State);
}

/// The kernel saves the 8 KB of tile data only for processes that have requested it.
bool asks_for_tiles() {
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_amx_bf16() {
  static const bool has = [] {
    const Leaf features = cpuid(7, 0);
    return bit(features.d, 22) && bit(features.d, 24) && has_avx512_bf16() && saves(kTileState) && asks_for_tiles();
  }();
  return has;
}

bool multiplies_bf16() {
  static const bool has = has_avx512_bf16();
  return has;
}

std::uint64_t processor_kind() {
  constexpr unsigned kStepping = 0xF;
  constexpr unsigned kSse4AndAvx = 0x30181201;         // SSE3, SSSE3, FMA, SSE4.1, SSE4.2, AVX, F16C
  constexpr unsigned kAvx2AndAvx512 = 0xD0230020;      // AVX2, AVX-512 F, DQ, IFMA, CD, BW, VL
  constexpr unsigned kByteInstructions = 0x00005842;   // AVX-512 VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ
  constexpr unsigned kTilesAndF16 = 0x03C0000C;        // AVX-512 4VNNIW, 4FMAPS, FP16, AMX
  constexpr unsigned kLaterInstructions = 0x00A00030;  // AVX-VNNI, AVX-512 BF16, AMX-FP16, AVX-IFMA
  const Leaf vendor = cpuid(0, 0);
  const Leaf model = cpuid(1, 0);
  const Leaf features = cpuid(7, 0);
  const std::array<unsigned, 10> facts{vendor.b,
                                       vendor.c,
                                       vendor.d,
                                       model.a & ~kStepping,
                                       model.c & kSse4AndAvx,
                                       features.b & kAvx2AndAvx512,
                                       features.c & kByteInstructions,
                                       features.d & kTilesAndF16,
                                       cpuid(7, 1).a & kLaterInstructions,
                                       has_amx_bf16() ? 1U : 0U};
  return hash_of(std::as_bytes(std::span(facts)));
}

#else

bool has_amx_bf16() { return false; }
bool multiplies_bf16() { return false; }

std::uint64_t processor_kind() {
#if defined(__linux__)
  const std::array<unsigned long, 2> facts{getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
  return hash_of(std::as_bytes(std::span(facts)));
#else
  return 0;
#endif
}

#endif

}  // namespace winnow
