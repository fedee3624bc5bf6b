// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace winnow::eval {

/// Distance of predictions from a reference, over all steps.
struct Distance {
  double divergence = 0;  ///< sum of KL(reference || method), nats
  int agreed = 0;         ///< steps with the same best token
  int steps = 0;
};

/// The token with the highest logit.
std::size_t best(std::span<const float> logits);

/// The distribution to which others are compared.
class Reference {
 public:
  explicit Reference(std::span<const float> logits);
  void compare(std::span<const float> method, Distance& to) const;

 private:
  std::vector<double> log_p_;
  std::size_t best_;
};

}  // namespace winnow::eval
