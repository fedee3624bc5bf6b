// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow {

/// Whether this process may use AMX's tiles of bf16 (on Linux it must ask the kernel first: the first call does), with
/// the AVX-512 instructions that every such machine has.
bool has_amx_bf16();

/// Whether there are instructions that multiply bf16 and add in f32: AMX or AVX-512-BF16.
bool multiplies_bf16();

}  // namespace winnow
