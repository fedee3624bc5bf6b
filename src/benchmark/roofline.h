// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace winnow {
class Model;
}

namespace winnow::benchmark {

/// The best rates of this machine, measured by the threads that run the model. A shared machine's rates change from
/// hour to hour.
struct Roofline {
  double f32_rate = 0;   ///< floating-point operations per second of fused multiply-adds in f32
  double bf16_rate = 0;  ///< the same of bf16 products, by tiles or vectors; 0 if the machine has none
  double bandwidth = 0;  ///< bytes read from memory per second
};

/// Takes about a second.
Roofline measure_roofline(int threads);

/// The least work of one test.
struct Work {
  double operations = 0;
  double bytes = 0;  ///< read from memory
};

/// Work of reading `tokens` tokens after `depth` tokens with a full cache: each token multiplies every matrix but the
/// last; attention is causal; weights are read once.
Work work_of_reading(const Model& model, int tokens, int depth);

/// Work of `steps` decode steps of `batch` sequences with `kv_bytes` of cache together. Each step reads the weights and
/// the cache.
Work work_of_decoding(const Model& model, int steps, int batch, double kv_bytes);

/// A lower bound of the time on this machine.
double least_seconds(const Work& work, const Roofline& roofline);

}  // namespace winnow::benchmark
