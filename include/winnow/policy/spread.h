// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "winnow/export.h"
#include "winnow/policy/method.h"
#include "winnow/policy/options.h"

/// Spreading of a budget over layers and heads.
namespace winnow::policy {

/// PyramidKV (Cai et al., 2024, "PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling",
/// section 4.2): the budget beyond the always kept entries falls linearly from the first layer to the last, which gets
/// the mean / beta. No layer gets more entries than the prompt has tokens.
WINNOW_EXPORT LayerBudgetPart pyramid(double beta);
WINNOW_EXPORT Option pyramid_option();

enum class FloorRule : std::uint8_t {
  blend,  ///< a head gets (1 - floor) of its count in the ranking over the layer plus floor of the uniform share
  hard,   ///< a head keeps its best (floor * mean) entries; the ranking over the layer fills the rest
};

/// Ada-KV (Feng et al., 2024, "Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM
/// Inference", algorithm 1): each head keeps as many entries as it has among the best of the whole layer.
WINNOW_EXPORT HeadBudgetPart adaptive(double floor, FloorRule rule);
/// The options `floor` and `floor-rule`.
WINNOW_EXPORT std::vector<Option> adaptive_options();
WINNOW_EXPORT HeadBudgetPart adaptive(const Options& options);

}  // namespace winnow::policy
