// SPDX-License-Identifier: Apache-2.0
// Any bytes as a calibration, with checksums that hold: refused with an Error, or good enough to predict by.
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "fuzz/seed_model.h"
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
      if (static_cast<int>(layer.queries.mean.size()) != spec.n_head * spec.head_dim ||
          static_cast<int>(layer.queries.mean_lengths.size()) != spec.n_head * (spec.head_dim / 2))
        std::abort();
      for (int head = 0; head < static_cast<int>(layer.bias.size()); ++head) {
        if (!std::isfinite(layer.score(head, row.data()))) std::abort();
      }
    }
  } catch (const winnow::Error&) {
  }
  return 0;
}
