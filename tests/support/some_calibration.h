// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/memory.h"
#include "base/worker.h"
#include "cache/scratch.h"
#include "engine/calibration.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "winnow/policy/registry.h"

namespace winnow::test {

/// The results of all methods' calibrators on one passage of random numbers.
inline policy::LayerCalibration some_facts(const model::Hparams& hparams, int layer, std::mt19937& random) {
  constexpr int kTokens = 24;
  std::normal_distribution<float> normal;
  const auto numbers = [&](int count) {
    std::vector<float> out(static_cast<std::size_t>(count));
    for (float& x : out) x = normal(random);
    return out;
  };
  const auto& spec = hparams.layer(layer);
  MemoryAccount account;
  cache::LayerScratch scratch(account, ElementType::f32, spec.n_head_kv, spec.head_dim, kTokens);
  std::vector<std::int32_t> positions;
  for (int j = 0; j < kTokens; ++j) positions.push_back(j);
  scratch.extend(positions);
  const auto inputs = numbers(kTokens * hparams.n_embd);
  const auto queries = numbers(kTokens * spec.n_head * spec.head_dim);
  policy::Scores scores(spec.n_head_kv, kTokens);
  for (float& x : scores.all()) x = std::exp(normal(random));
  policy::LayerCalibration::Facts facts;
  for (const auto& part : policy::registered_calibrations()) {
    const auto calibrator = part.calibrator({spec.n_head, spec.n_head_kv, spec.head_dim, hparams.n_embd});
    calibrator->begin_layer(engine::observed_layer(hparams, layer, {kTokens, 0}, 0, engine::no_calibration()));
    calibrator->see_inputs({0, kTokens, hparams.n_embd, inputs.data()}, {0, 1});
    calibrator->see_rows({0, kTokens, queries.data(), queries.data(), scratch}, {0, 1});
    calibrator->see_scores(scores);
    facts.emplace(part.name, calibrator->numbers());
  }
  return policy::LayerCalibration(std::move(facts));
}

/// A calibration of random numbers, the same for the same seed.
inline engine::Calibration some_calibration(const model::Hparams& hparams, unsigned seed = 1) {
  std::mt19937 random(seed);
  engine::Calibration out;
  for (int l = 0; l < hparams.n_kv_layer; ++l) {
    if (hparams.layer(l).window == 0) out.layers.push_back(some_facts(hparams, l, random));
  }
  return out;
}

inline engine::ModelIdentity identity_of(const Model& model) {
  return engine::identity_of(model.impl().weights->hparams(), model.hash());
}

/// Writes some_calibration() for a model and returns the path. A session that loads it can run every method.
inline std::string calibrated(const std::string& path, const Model& model, unsigned seed = 1) {
  ReplacingFile file(path);
  engine::write_calibration(file, some_calibration(model.impl().weights->hparams(), seed), identity_of(model));
  file.commit();
  return path;
}

}  // namespace winnow::test
