// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/export.h"
#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

/// How a budget is spread over layers and heads.
namespace winnow::policy {

/// PyramidKV (Cai et al., 2024, "PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling",
/// section 4.2): what is not always kept falls linearly from the first layer to the last, whose share is the mean's /
/// beta; no layer gets more than the prompt has.
WINNOW_EXPORT LayerBudgetPart pyramid(double beta);
WINNOW_EXPORT Option pyramid_option();

enum class FloorRule : std::uint8_t {
  blend,  ///< a head gets (1 - floor) of what the ranking over the layer says and floor of the uniform share
  hard,   ///< each head's best floor * mean entries are safe, the ranking decides about the rest
};

/// Ada-KV (Feng et al., 2024, "Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM
/// Inference", algorithm 1): the best entries of the whole layer say how many each head keeps.
WINNOW_EXPORT HeadBudgetPart adaptive(double floor, FloorRule rule);
/// `floor` and `floor-rule`.
WINNOW_EXPORT std::vector<Option> adaptive_options();
WINNOW_EXPORT HeadBudgetPart adaptive(const Options& options);

}  // namespace winnow::policy
