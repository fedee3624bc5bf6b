// SPDX-License-Identifier: Apache-2.0
#include "eval/measures/drawing.h"

#include <algorithm>
#include <cmath>

#include "base/as_size.h"

namespace winnow::eval {

std::vector<Token> ends_of(const Model& model) {
  std::vector<Token> out;
  for (Token token = 0; token < model.info().n_vocab; ++token) {
    if (model.vocab().ends(token)) out.push_back(token);
  }
  return out;
}

Token drawn(std::span<const float> logits, std::span<const Token> without, Random& random) {
  const double most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> sums;
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool counts = std::find(without.begin(), without.end(), static_cast<Token>(i)) == without.end();
    sum += counts ? std::exp(logits[i] - most) : 0;
    sums.push_back(sum);
  }
  const double at = static_cast<double>(random.next() >> 11U) * 0x1p-53 * sum;
  // The first sum above `at` belongs to a token with a share above 0.
  const auto found = std::upper_bound(sums.begin(), sums.end(), at);
  return static_cast<Token>(std::min(found, sums.end() - 1) - sums.begin());
}

}  // namespace winnow::eval
