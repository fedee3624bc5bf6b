// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "support/tiny_gguf.h"

/// Largest difference (relative, in the L2 norm) between the logits of two correct programs that run the same network
/// on the same file.
namespace winnow::test {

/// A softmax turns an absolute error of its logits q·k / sqrt(d) into a relative error of its outputs. An error of
/// relative size e in a random direction changes such a logit by e times the gain |q| |k| / d. The graph's parity tests
/// measure the gain of every network (rms over all pairs of a query and a key that it sees) and compare it with this
/// bound; measured were 1.0 to 1.2 for qwen3 (which normalizes queries and keys), 4.1 to 5.0 for llama, qwen2 and
/// gemma, and 3.7 for the real model.
constexpr double kLargestGain = 5;

/// f32: partial sums of K independent terms grow like sqrt(k), so their roundings add to u K / sqrt(2), which is u
/// sqrt(K / 2) of the result's rms. Eight products follow each other in a block (Q, K, V, q·k, p·v, output, gate and up
/// side by side, down), and no sum of the tiny networks has more than 1,024 terms. They are assumed to add up without
/// cancelling, plus four sigma of the gain.
inline double f32_tolerance(int layers, double gain = kLargestGain) {
  return 4 * gain * 8 * layers * 0x1p-24 * std::sqrt(1024 / 2.0);
}

/// ggml rounds the activations of every product to the type that it pairs with the weights' type. If the two programs
/// differ by f32 rounding before that, they round alike almost everywhere; but one value rounded the other way disturbs
/// all later ones, so in the end they may round independently, with sqrt(2) times the error e = step / sqrt(12) of one
/// rounding. A block rounds at 4 depths (before Q, K and V, the output, gate and up, down); besides, errors of both
/// queries and keys change logits by sqrt(2) gain e. So a block adds (4 + 2 gain^2) e^2, and blocks add like a random
/// walk. (A network compared with itself, with one unit roundoff of noise on attention's outputs, does differ by such
/// amounts; so does llama.cpp compared with itself when other sequences share its cache.)
inline double rounding_tolerance(double relative_step, int layers, double gain = kLargestGain) {
  return std::sqrt(2.0) * relative_step / std::sqrt(12.0) * std::sqrt((4 + 2 * gain * gain) * layers);
}

/// 8-bit blocks: the step is max / 127, and the largest of 256 normal values is 2.8 of their rms.
inline double quantized_tolerance(int layers) { return rounding_tolerance(2.8 / 127, layers); }

/// Half floats: the step relative to the value is at most 2^-mantissa.
inline double half_tolerance(int mantissa, int layers, double gain = kLargestGain) {
  return rounding_tolerance(std::ldexp(1.0, -mantissa), layers, gain);
}

/// The factor that RoPE multiplies queries and keys by.
inline double magnitude_of(const TinyScaling& scaling) {
  const double own = scaling.attn_factor == 0 ? 1 : scaling.attn_factor;
  return scaling.type == "yarn" && scaling.factor > 1 ? own * (1 + 0.1 * std::log(scaling.factor)) : own;
}

/// The bound on a tiny network's gain: kLargestGain times the ratio of its variance of queries and keys to that of the
/// networks that kLargestGain was measured on. Theirs is 4, the scale of their matrices, times 13/12, the mean square
/// of a norm's weights from 0.5 to 1.5. Biases from -1 to 1 have the variance 1/3; those of queries and keys are added
/// after the product, those of the norm before it, where the matrices' scale applies (4/3). RoPE's magnitude multiplies
/// queries and keys, a temperature the queries. (Norms of queries and keys, and smaller scales of their products, only
/// make the gain smaller.) Where logits are q·k of normalized heads, without 1 / sqrt(d), the gain is sqrt(d) times the
/// mean square of their norms' weights, with a margin because these weights are few.
inline double largest_gain(const TinyModel& model) {
  const TinyArchitecture& row = tiny_architecture(model.arch);
  if (row.unscaled_attention) return 1.5 * 13.0 / 12 * std::sqrt(model.head_dim);
  const bool qkv_bias = row.biases.qkv || (model.optional_biases && row.optional_biases.qkv);
  const double usual = 4 * 13.0 / 12;
  const double variance = usual + (row.norm == NormKind::layer_with_bias ? 4 / 3.0 : 0) + (qkv_bias ? 1 / 3.0 : 0);
  return kLargestGain * variance / usual * std::pow(magnitude_of(model.scaling), 2) * row.warmest;
}

/// The tolerance of a tiny network with f32 weights. ggml's GELU is a table over f16 values, so it rounds to 10 bits;
/// the other activations do not round.
inline double tolerance_of(const TinyModel& model) {
  const double gain = largest_gain(model);
  const bool gelu = tiny_architecture(model.arch).gelu;
  return f32_tolerance(model.n_layer, gain) + (gelu ? half_tolerance(10, model.n_layer, gain) : 0);
}

}  // namespace winnow::test
