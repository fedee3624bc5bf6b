// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hwy/base.h>

#include <cstdint>

// These files use intrinsics: this version of Highway cannot convert two vectors to bf16, multiply bf16, or scale by
// powers of 2.
#if HWY_ARCH_X86_64

#include <immintrin.h>

#if HWY_COMPILER_GCC && !HWY_COMPILER_CLANG
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // the intrinsics' own undefined vectors
#endif

/// Target of the functions in these files, independent of the build's target.
#define WINNOW_AVX512_BF16 "avx2,fma,f16c,avx512f,avx512vl,avx512bw,avx512dq,avx512bf16"

HWY_PUSH_ATTRIBUTES(WINNOW_AVX512_BF16)

namespace winnow::attention::cpu {

/// f32 elements of a vector.
inline constexpr int kVector = 16;

/// Pairs of bf16, rounded to nearest, from the elements of `even` and `odd`.
HWY_INLINE __m512i pairs_of(__m512 even, __m512 odd) {
  alignas(64) static constexpr std::uint16_t kOrder[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                           21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                           11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}

}  // namespace winnow::attention::cpu

HWY_POP_ATTRIBUTES

#endif
