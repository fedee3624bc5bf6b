#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace winnow::bench {

/// Over all steps of all prompts.
struct Fidelity {
  double divergence = 0;
  int agreed = 0;
  int steps = 0;
};

inline std::size_t best(std::span<const float> logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

inline std::vector<double> log_softmax(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - most);
  const double shift = most + std::log(sum);
  std::vector<double> out;
  for (const float x : logits) out.push_back(x - shift);
  return out;
}

inline void compare(std::span<const float> full, std::span<const float> method, Fidelity& to) {
  const auto p = log_softmax(full);
  const auto q = log_softmax(method);
  for (std::size_t i = 0; i < p.size(); ++i) to.divergence += std::exp(p[i]) * (p[i] - q[i]);
  to.agreed += best(full) == best(method) ? 1 : 0;
  ++to.steps;
}

}  // namespace winnow::bench
