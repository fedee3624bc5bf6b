// SPDX-License-Identifier: Apache-2.0
#include "policy/methods/presets.h"
#include "policy/window.h"
#include "winnow/policy/spread.h"

namespace winnow::policy::methods {

/// PyramidKV (Cai et al., 2024, "PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling",
/// section 4): SnapKV with a budget that falls from layer to layer. Options as snapkv, and
///   beta  the last layer's share is the mean share divided by beta
Preset pyramidkv() {
  return {.name = "pyramidkv",
          .summary = "snapkv with larger budgets in the first layers and smaller ones in the last",
          .paper = "Cai et al. 2024, PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling",
          .options = window_options({pyramid_option()}),
          .build = [](const Options& options) {
            Method method = window_method(options);
            method.selection.over_layers = pyramid(options.number("beta"));
            return method;
          }};
}

}  // namespace winnow::policy::methods
