// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>

/// How far two correct programs may be apart in their logits, relative in the L2 norm, when they run the same network
/// on the same file.
namespace winnow::test {

/// A softmax turns an absolute error of its logits q·k / sqrt(d) into a relative error of what it gives. An error of
/// relative size e in random direction changes such a logit by e |q| |k| / d: that is the gain. The parity tests of the
/// graph measure it on every network (rms over all pairs of a query and a key that it sees) and hold it against this
/// bound; seen were 1.0 to 1.2 for qwen3 (which norms them), 4.1 to 5.0 for the other tiny networks, 3.7 for the real
/// model.
constexpr double kLargestGain = 5;

/// f32: partial sums of K independent terms grow like sqrt(k), so their roundings add to u K / sqrt(2), which is u
/// sqrt(K / 2) of the result's rms. Eight products follow each other in a block (Q, K, V, q·k, p·v, output, gate and up
/// side by side, down), and no sum of the tiny networks has more than 1,024 terms. All are added without luck, and four
/// sigma of the gain.
inline double f32_tolerance(int layers) { return 4 * kLargestGain * 8 * layers * 0x1p-24 * std::sqrt(1024 / 2.0); }

/// ggml rounds the activations of every product to the weights' partner type. Sides that differ before that by f32
/// rounding round alike almost everywhere, but one value that rounds the other way disturbs all that follow, so in the
/// end they may round independently: sqrt(2) of one rounding, whose error e is step / sqrt(12). A block has it at 4
/// depths (before Q, K and V, the output, gate and up, down); besides, queries and keys that both err make logits that
/// err by sqrt(2) gain e. So a block adds (4 + 2 gain^2) e^2, and blocks add like a random walk. (A network against
/// itself, with one unit roundoff of noise on what attention gives, does differ by such amounts; so does llama.cpp
/// against itself when other sequences share its cache.)
inline double rounding_tolerance(double relative_step, int layers) {
  return std::sqrt(2.0) * relative_step / std::sqrt(12.0) * std::sqrt((4 + 2 * kLargestGain * kLargestGain) * layers);
}

/// 8-bit blocks: the step is max / 127, and the largest of 256 normal values is 2.8 of their rms.
inline double quantized_tolerance(int layers) { return rounding_tolerance(2.8 / 127, layers); }

/// The step of a half float relative to the value: 2^-mantissa bits at most.
inline double half_tolerance(int mantissa, int layers) {
  return rounding_tolerance(std::ldexp(1.0, -mantissa), layers);
}

/// Of a tiny network of two blocks with f32 weights. ggml's GELU is a table over f16 values: a rounding to 10 bits
/// where the other architectures have none.
inline double tolerance_of(const std::string& arch) {
  return f32_tolerance(2) + (arch == "gemma" ? half_tolerance(10, 2) : 0);
}

}  // namespace winnow::test
