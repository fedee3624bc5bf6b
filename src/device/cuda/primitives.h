// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#define WINNOW_DEVICE __device__ __forceinline__
#define WINNOW_KERNEL(threads) __global__ void __launch_bounds__(threads)
#define WINNOW_UNROLL _Pragma("unroll")
#define WINNOW_PRAGMA(text) _Pragma(#text)
#define WINNOW_UNROLL_BY(n) WINNOW_PRAGMA(unroll n)

namespace winnow::device {

WINNOW_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
WINNOW_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
WINNOW_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
WINNOW_DEVICE int blocks_x() { return static_cast<int>(gridDim.x); }

/// Shared memory of the block, of the size given at launch.
WINNOW_DEVICE unsigned char* shared_memory() {
  extern __shared__ __align__(1024) unsigned char bytes[];
  return bytes;
}
WINNOW_DEVICE void sync_block() { __syncthreads(); }
WINNOW_DEVICE float shuffle_xor(float v, int lanes) { return __shfl_xor_sync(0xffffffffU, v, lanes); }
WINNOW_DEVICE std::uint32_t shuffle_xor(std::uint32_t v, int lanes) { return __shfl_xor_sync(0xffffffffU, v, lanes); }
WINNOW_DEVICE void raise_flag(std::int32_t* flag) { atomicOr(flag, 1); }

WINNOW_DEVICE float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
WINNOW_DEVICE float float_of(std::uint32_t bits) { return __uint_as_float(bits); }
WINNOW_DEVICE float infinity() { return __int_as_float(0x7f800000); }
WINNOW_DEVICE float log2(float x) { return __log2f(x); }
WINNOW_DEVICE float divide(float x, float y) { return __fdividef(x, y); }

struct alignas(16) Words {
  std::uint32_t w[4];
};
struct alignas(8) HalfWords {
  std::uint32_t w[2];
};
struct alignas(16) Floats {
  float x[4];
};
WINNOW_DEVICE Floats load_floats(const float* from) { return *reinterpret_cast<const Floats*>(from); }
/// Loads from memory that is read once, and that no running kernel writes.
WINNOW_DEVICE Words load16(const void* from) {
  Words v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
      : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
      : "l"(from));
  return v;
}
WINNOW_DEVICE HalfWords load8(const void* from) {
  HalfWords v;
  asm("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(v.w[0]), "=r"(v.w[1]) : "l"(from));
  return v;
}
WINNOW_DEVICE std::uint32_t load2(const void* from) { return __ldg(static_cast<const unsigned short*>(from)); }
WINNOW_DEVICE std::uint32_t load4(const void* from) { return __ldg(static_cast<const unsigned*>(from)); }

/// Selects four of the bytes 0 to 7 of (a, b) by the nibbles of `which`.
WINNOW_DEVICE std::uint32_t bytes_of(std::uint32_t a, std::uint32_t b, std::uint32_t which) {
  return __byte_perm(a, b, which);
}

/// Address in shared memory, for arithmetic.
using SharedAddress = std::uint32_t;
WINNOW_DEVICE SharedAddress address_of(const void* shared) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(shared));
}

/// Loads four matrices of 8 x 8 elements of 16 bits; lane l gives row l % 8 of matrix l / 8.
WINNOW_DEVICE void load_matrices(std::uint32_t (&r)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row));
}
WINNOW_DEVICE void load_transposed(std::uint32_t (&r)[4], SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row));
}

/// Begins an asynchronous copy of 16 bytes into shared memory, or writes zeros if `there` is false.
WINNOW_DEVICE void copy_async(void* to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address_of(to)), "l"(from), "r"(there ? 16 : 0));
}
WINNOW_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;"); }
/// Waits for this thread's copies, except those of the last N commits.
template <int N>
WINNOW_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N));
}

/// Pairs of 16-bit numbers in a word. multiply() adds the warp's product of 16 x 16 by 16 x 8 elements to c.
struct Bf16 {
  WINNOW_DEVICE static std::uint32_t pack(float low, float high) {
    const __nv_bfloat162 v = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&v);
  }
  WINNOW_DEVICE static float low(std::uint32_t u) { return __uint_as_float(u << 16); }
  WINNOW_DEVICE static float high(std::uint32_t u) { return __uint_as_float(u & 0xffff0000U); }
  WINNOW_DEVICE static void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

struct F16 {
  WINNOW_DEVICE static std::uint32_t pack(float low, float high) {
    const __half2 v = __floats2half2_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&v);
  }
  WINNOW_DEVICE static float low(std::uint32_t u) { return __low2float(half2(u)); }
  WINNOW_DEVICE static float high(std::uint32_t u) { return __high2float(half2(u)); }
  WINNOW_DEVICE static void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
  /// Differences and products of pairs, each rounded.
  WINNOW_DEVICE static std::uint32_t minus(std::uint32_t x, std::uint32_t y) {
    const __half2 v = __hsub2(half2(x), half2(y));
    return *reinterpret_cast<const std::uint32_t*>(&v);
  }
  WINNOW_DEVICE static std::uint32_t times(std::uint32_t x, std::uint32_t y) {
    const __half2 v = __hmul2(half2(x), half2(y));
    return *reinterpret_cast<const std::uint32_t*>(&v);
  }

 private:
  WINNOW_DEVICE static __half2 half2(std::uint32_t u) { return *reinterpret_cast<const __half2*>(&u); }
};

/// Blocks of a launch, threads and bytes of shared memory of a block.
struct Grid {
  int x, y, threads, shared;
};

/// Queues Kernel. Returns null, or the reason of a failure.
template <auto Kernel, class Task>
const char* launch(const Grid& grid, void* stream, const Task& task) {
  if (grid.x == 0 || grid.y == 0) return nullptr;
  static const cudaError_t ready =
      cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.shared);  // the same in each call
  if (ready != cudaSuccess) return cudaGetErrorString(ready);
  Kernel<<<dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y)), static_cast<unsigned>(grid.threads),
           static_cast<std::size_t>(grid.shared), static_cast<cudaStream_t>(stream)>>>(task);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

}  // namespace winnow::device
