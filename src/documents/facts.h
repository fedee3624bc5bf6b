// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "attention/attention.h"
#include "documents/document.h"

namespace winnow::documents {

/// Observations of one layer during a document's own prefill.
struct LayerAttention {
  attention::Shape shape;
  const cache::LayerScratch* scratch = nullptr;           ///< keys of all tokens
  std::span<const float> queries;                         ///< [N][H_q][d]
  std::span<const float> logsums;                         ///< [N][H_q] logarithm of each query's sum of exp(logit)
  const attention::ColumnStatistics* all = nullptr;       ///< sums of all rows
  const attention::ColumnStatistics* diagonal = nullptr;  ///< of each row at its own token

  int tokens() const { return scratch->size(); }
};

/// Computes block means, representatives with their exponents, outliers, and received attention. Holds at most [middle
/// blocks][N] of attention.
LayerFacts facts_of(const LayerAttention& layer);

/// Lower bound of attention before taking its logarithm.
inline constexpr double kLeastAttention = 1e-8;

/// Fit of y ~ x^-alpha at x = 1, 2, …, by least squares of the logarithms.
struct PowerLaw {
  double exponent = 0;   ///< alpha, at least 0
  double log_scale = 0;  ///< ln y at x = 1
  double explained = 0;  ///< explained share of the variance of ln y, 0 … 1; 0 if y is constant
};
PowerLaw power_law_of(std::span<const double> y);

/// Attention to the representative of a middle block.
struct BlockAttention {
  Representative representative;
  std::vector<double> curve;  ///< mean over query heads, by distance, from 1 to the document's end
  PowerLaw law;               ///< of the curve
};

/// Attention to the middle blocks of a layer, in order.
std::vector<BlockAttention> attention_to_blocks(const LayerAttention& layer);

/// Number of deviations below the mean at which an exponent is an outlier (PauTa).
inline constexpr double kOutlierFactor = 3;

}  // namespace winnow::documents
