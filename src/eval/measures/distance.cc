// SPDX-License-Identifier: Apache-2.0
#include "eval/measures/distance.h"

#include <algorithm>
#include <cmath>

#include "base/as_size.h"

namespace winnow::eval {

namespace {

std::vector<double> log_softmax(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - most);
  const double shift = most + std::log(sum);
  std::vector<double> out;
  for (const float x : logits) out.push_back(x - shift);
  return out;
}

}  // namespace

std::size_t best(std::span<const float> logits) {
  return as_size(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

Reference::Reference(std::span<const float> logits) : log_p_(log_softmax(logits)), best_(best(logits)) {}

void Reference::compare(std::span<const float> method, Distance& to) const {
  const auto log_q = log_softmax(method);
  for (std::size_t i = 0; i < log_p_.size(); ++i) to.divergence += std::exp(log_p_[i]) * (log_p_[i] - log_q[i]);
  to.agreed += best(method) == best_ ? 1 : 0;
  ++to.steps;
}

}  // namespace winnow::eval
