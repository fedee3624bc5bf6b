// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "winnow/export.h"

namespace winnow {

class Model;
struct SamplingOptions;

/// Sampling options that the user has set; nullopt: not set.
struct WINNOW_EXPORT SamplingChoice {
  std::optional<float> temperature = {};
  std::optional<int> top_k = {};
  std::optional<float> top_p = {};
  std::optional<float> min_p = {};
  std::optional<float> repeat_penalty = {};
  std::optional<std::uint32_t> seed = {};

  /// Returns `options`, overridden by the options set here.
  SamplingOptions over(SamplingOptions options) const;
};

/// Defaults of llama.cpp's server.
WINNOW_EXPORT SamplingOptions usual_sampling();

/// Defaults of a model: `general.sampling.*` of its file, otherwise usual_sampling(). Ignores invalid values in the
/// file, with a warning.
WINNOW_EXPORT SamplingOptions default_sampling(const Model& model);

}  // namespace winnow
