// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "winnow/export.h"

namespace winnow {

class Model;
struct SamplingOptions;

/// Options of sampling that somebody has chosen. Those that are absent are somebody else's.
struct WINNOW_EXPORT SamplingChoice {
  std::optional<float> temperature = {};
  std::optional<int> top_k = {};
  std::optional<float> top_p = {};
  std::optional<float> min_p = {};
  std::optional<float> repeat_penalty = {};
  std::optional<std::uint32_t> seed = {};

  /// These options, changed where something was chosen.
  SamplingOptions over(SamplingOptions options) const;
};

/// How llama.cpp's server samples where nobody chooses.
WINNOW_EXPORT SamplingOptions usual_sampling();

/// How a model is sampled where nobody chooses: as its file says (`general.sampling.*`), and for the rest as usual.
/// Warns of values in the file that cannot be, which count as absent.
WINNOW_EXPORT SamplingOptions default_sampling(const Model& model);

}  // namespace winnow
