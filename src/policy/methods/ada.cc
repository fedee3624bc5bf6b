// SPDX-License-Identifier: Apache-2.0
#include "policy/methods/presets.h"
#include "policy/window.h"
#include "winnow/policy/spread.h"

namespace winnow::policy::methods {

/// Ada-KV (Feng et al., 2024, "Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM
/// Inference", algorithms 1 and 2): SnapKV whose heads share a layer's budget by need. Options as snapkv, and
///   floor       share of the budget that is uniform over heads; for models with grouped queries the authors' code
///               suggests 0.2
///   floor-rule  blend: the floor is mixed into each head's share, as in the paper; hard: it protects each head's best
///               entries
Preset ada_snapkv() {
  return {.name = "ada-snapkv",
          .summary = "snapkv whose heads share a layer's budget by need",
          .paper =
              "Feng et al. 2024, Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM "
              "Inference",
          .options = window_options(adaptive_options()),
          .build = [](const Options& options) {
            Method method = window_method(options);
            method.selection.over_heads = adaptive(options);
            return method;
          }};
}

/// Ada-KV over PyramidKV (the same paper, section 3.4): layers by the pyramid, heads by need. Options as ada-snapkv and
/// pyramidkv.
Preset ada_pyramid() {
  auto more = adaptive_options();
  more.push_back(pyramid_option());
  return {.name = "ada-pyramid",
          .summary = "pyramidkv whose heads share a layer's budget by need",
          .paper =
              "Feng et al. 2024, Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM "
              "Inference",
          .options = window_options(std::move(more)),
          .build = [](const Options& options) {
            Method method = window_method(options);
            method.selection.over_layers = pyramid(options.number("beta"));
            method.selection.over_heads = adaptive(options);
            return method;
          }};
}

}  // namespace winnow::policy::methods
