// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "attention/attention.h"
#include "documents/document.h"

namespace winnow::documents {

/// What a document's own prefill shows of one layer.
struct SeenLayer {
  attention::Shape shape;
  const cache::LayerScratch* scratch = nullptr;      ///< keys of all tokens
  std::span<const float> queries;                    ///< [N][H_q][d]
  std::span<const float> logsums;                    ///< [N][H_q] logarithm of each query's sum of exp(logit)
  const attention::Observation* all = nullptr;       ///< sums of all rows
  const attention::Observation* diagonal = nullptr;  ///< of each row at its own token

  int tokens() const { return scratch->size(); }
};

/// Block means, representatives with their exponents, outliers, received attention. Holds no more than [middle
/// blocks][N] of attention.
LayerFacts facts_of(const SeenLayer& seen);

/// What attention is taken for at least where its logarithm matters.
inline constexpr double kLeastAttention = 1e-8;

/// y ~ x^-alpha for y at x = 1, 2, …, by least squares of the logarithms.
struct PowerLaw {
  double exponent = 0;   ///< alpha, at least 0
  double log_scale = 0;  ///< ln y at x = 1
  double explained = 0;  ///< share of the variance of ln y, 0 … 1; 0 where y does not vary
};
PowerLaw power_law_of(std::span<const double> y);

/// Attention to the representative of a middle block.
struct BlockAttention {
  Representative representative;
  std::vector<double> curve;  ///< by distance from 1 on, to the document's end: the mean over query heads
  PowerLaw law;               ///< of the curve
};

/// The middle blocks of a layer, in their order.
std::vector<BlockAttention> attention_to_blocks(const SeenLayer& seen);

/// Factor of the deviation below which an exponent is an outlier (PauTa).
inline constexpr double kOutlierFactor = 3;

}  // namespace winnow::documents
