// SPDX-License-Identifier: Apache-2.0
#include "policy/methods/presets.h"
#include "policy/window.h"

namespace winnow::policy::methods {

/// SnapKV (Li et al., 2024, "SnapKV: LLM Knows What You are Looking for Before Generation", section 4): the attention
/// of the prompt's last queries predicts the attention of the answer. Pooling keeps neighbours of important entries.
///   window  last queries that are observed, and last entries that are always kept
///   kernel  length of the pooling along positions
///   pool    max or mean
///   pad     divisor of mean pooling at the ends: the number of entries under the kernel (valid) or its length (count)
///   gqa     how scores are combined over the query heads of a KV head
Preset snapkv() {
  return {.name = "snapkv",
          .summary = "keeps the entries that the prompt's last queries attend to most, and their neighbours",
          .paper = "Li et al. 2024, SnapKV: LLM Knows What You are Looking for Before Generation",
          .options = window_options(),
          .build = window_method};
}

}  // namespace winnow::policy::methods
