// SPDX-License-Identifier: Apache-2.0
// Any bytes as a calibration with valid checksums: refused with an Error, or usable for finite predictions.
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "fuzz/seed_model.h"
#include "policy/calibrations/predicted_scores.h"
#include "policy/calibrations/query_statistics.h"
#include "support/reseal.h"
#include "support/some_calibration.h"
#include "winnow/error.h"

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static const auto model = winnow::test::seed_model();
  static const auto identity = winnow::test::identity_of(*model);
  const auto& hparams = model->impl().weights->hparams();
  std::string bytes(data, size);
  winnow::test::reseal(std::as_writable_bytes(std::span(bytes)));
  try {
    const winnow::MemorySource source(std::as_bytes(std::span(bytes)), "input");
    const auto calibration = winnow::engine::read_calibration(source, identity, hparams);
    const std::vector<float> row(static_cast<std::size_t>(hparams.n_embd), 1e-20F);
    const auto& spec = hparams.layer(0);
    for (const auto& layer : calibration.layers) {
      const winnow::policy::ScorePredictor predictor(layer, spec.n_head_kv, hparams.n_embd);
      for (int head = 0; head < spec.n_head_kv; ++head) {
        if (!std::isfinite(predictor.score(head, row.data()))) std::abort();
      }
      const winnow::attention::Shape shape{spec.n_head, spec.n_head_kv, spec.head_dim};
      for (int head = 0; head < spec.n_head; ++head) {
        if (!std::isfinite(winnow::policy::query_statistics_of(layer, shape, head).mean.back())) std::abort();
      }
    }
  } catch (const winnow::Error&) {
  }
  return 0;
}
