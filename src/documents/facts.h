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

/// Exponent of y ~ x^-alpha for y at x = 1, 2, …, by least squares of the logarithms; y is taken for 1e-8 at least, the
/// exponent for 0.
double power_law_exponent(std::span<const double> y);

/// Factor of the deviation below which an exponent is an outlier (PauTa).
inline constexpr double kOutlierFactor = 3;

}  // namespace winnow::documents
