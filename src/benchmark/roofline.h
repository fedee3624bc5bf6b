// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace winnow {
class Model;
}

namespace winnow::benchmark {

/// The best rates of this machine, measured now by the threads that run the model. A shared machine's rates change from
/// hour to hour.
struct Roofline {
  double f32_rate = 0;   ///< floating-point operations per second of fused multiply-adds in f32
  double bf16_rate = 0;  ///< of products of bf16, by tiles or vectors; 0 where the machine has none
  double bandwidth = 0;  ///< bytes per second that are read from memory
};

/// Takes about a second.
Roofline measure_roofline(int threads);

/// The least work of one test.
struct Work {
  double operations = 0;
  double bytes = 0;  ///< read from memory
};

/// Reading `tokens` after `depth` tokens with a full cache: every matrix but the last for each token, causal
/// attention, weights once.
Work work_of_reading(const Model& model, int tokens, int depth);

/// `steps` decode steps of `batch` sequences that attend to `kv_bytes` together: the weights and those bytes at each.
Work work_of_decoding(const Model& model, int steps, int batch, double kv_bytes);

/// No program can be faster than this on this machine.
double least_seconds(const Work& work, const Roofline& roofline);

}  // namespace winnow::benchmark
