// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// Rounding to bf16 (to nearest, ties to even) and the layout of packed matrices.
namespace winnow::network {

/// A packed matrix [inputs, outputs] is a sequence of blocks of 32 inputs by 64 outputs, inputs running faster, both
/// padded with zeros. A block holds pairs of inputs: [16 pairs][64 outputs][2].
constexpr int kBlockInputs = 32;
constexpr int kBlockOutputs = 64;

constexpr std::ptrdiff_t padded_inputs(std::ptrdiff_t n) {
  return (n + kBlockInputs - 1) / kBlockInputs * kBlockInputs;
}
constexpr std::ptrdiff_t padded_outputs(std::ptrdiff_t n) {
  return (n + kBlockOutputs - 1) / kBlockOutputs * kBlockOutputs;
}

/// to[i] = from[i] rounded, i < n; zeros up to `padded`.
void round_row(const float* from, std::ptrdiff_t n, std::ptrdiff_t padded, std::uint16_t* to);

/// Packs some inputs, a multiple of 32, of 64 neighbouring outputs. Their rounded rows are `stride` apart.
void pack_rows(const std::uint16_t* rows, std::ptrdiff_t stride, std::ptrdiff_t inputs, std::uint16_t* packed);

/// Bytes of work space for packing rows of weights with `threads` threads.
std::size_t packing_bytes(int threads);

}  // namespace winnow::network
