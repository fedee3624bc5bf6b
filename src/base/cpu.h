// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace winnow {

/// True if this process may use AMX tiles of bf16, and the AVX-512 instructions that every such machine has. On Linux
/// the first call asks the kernel for permission.
bool has_amx_bf16();

/// True if the processor has instructions that multiply bf16 and add in f32: AMX or AVX-512-BF16.
bool multiplies_bf16();

/// Hash of the processor's vendor, family and model and of its instructions for arithmetic. Libraries choose their
/// kernels by these, so machines with equal hashes compute the same bits.
std::uint64_t processor_kind();

}  // namespace winnow
