// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <random>
#include <string>

#include "base/file.h"
#include "engine/calibration.h"
#include "engine/model_impl.h"

namespace winnow::test {

/// A calibration of random numbers, the same for the same seed.
inline engine::Calibration some_calibration(const model::Hparams& hparams, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto numbers = [&](int count) {
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& x : out) x = normal(random);
    return out;
  };
  engine::Calibration out;
  for (int l = 0; l < hparams.n_kv_layer; ++l) {
    const auto& spec = hparams.layer(l);
    if (spec.window > 0) continue;
    out.layers.push_back({numbers(spec.n_head_kv * hparams.n_embd), numbers(spec.n_head_kv)});
    auto& queries = out.layers.back().queries;
    queries.mean = numbers(spec.n_head * spec.head_dim);
    for (const float x : numbers(spec.n_head * (spec.head_dim / 2))) queries.mean_lengths.push_back(2 + std::abs(x));
  }
  return out;
}

inline engine::ModelIdentity identity_of(const Model& model) {
  return engine::identity_of(model.impl().weights->hparams(), model.hash());
}

/// Writes it for a model, and returns the path: so every method runs in a session.
inline std::string calibrated(const std::string& path, const Model& model) {
  ReplacingFile file(path);
  engine::write_calibration(file, some_calibration(model.impl().weights->hparams()), identity_of(model));
  file.commit();
  return path;
}

}  // namespace winnow::test
