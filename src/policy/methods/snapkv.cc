// SPDX-License-Identifier: Apache-2.0
#include "policy/methods/presets.h"
#include "policy/window.h"

namespace winnow::policy::methods {

/// SnapKV (Li et al., 2024, "SnapKV: LLM Knows What You are Looking for Before Generation", section 4): the attention
/// of the prompt's last queries says what the answer will need; pooling keeps the neighbours of what is needed.
///   window  last queries that are observed, and entries that are always kept
///   kernel  length of the pooling along positions
///   pool    max or mean
///   pad     what mean pooling divides by at the ends: the entries under the kernel (valid) or its length (count)
///   gqa     how the query heads that share a KV head are brought together
Preset snapkv() {
  return {.name = "snapkv",
          .summary = "what the last queries of the prompt attend to, with its neighbours",
          .paper = "Li et al. 2024, SnapKV: LLM Knows What You are Looking for Before Generation",
          .options = window_options(),
          .build = window_method};
}

}  // namespace winnow::policy::methods
