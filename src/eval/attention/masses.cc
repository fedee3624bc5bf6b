// SPDX-License-Identifier: Apache-2.0
#include "eval/attention/masses.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace winnow::eval {

std::vector<double> last_masses(const HeadAttention& attention, int query_head, int tokens,
                                std::span<const double> gain) {
  const int rows = std::min(tokens, kLastQueries);
  std::vector<double> out(as_size(tokens));
  for (int i = 0; i < rows; ++i) {
    const auto row = attention.row(query_head, tokens - rows + i, gain.empty() ? 1 : gain[as_size(i)]);
    for (std::size_t j = 0; j < row.size(); ++j) out[j] += row[j] / rows;
  }
  return out;
}

double share_in_best(std::vector<double> masses, int count) {
  std::sort(masses.begin(), masses.end(), std::greater<>());
  const double all = std::accumulate(masses.begin(), masses.end(), 0.0);
  const auto end = masses.begin() + std::min(static_cast<std::ptrdiff_t>(count), std::ssize(masses));
  return all > 0 ? std::accumulate(masses.begin(), end, 0.0) / all : 0;
}

double share_at(std::span<const double> masses, std::span<const std::int32_t> positions) {
  const double all = std::accumulate(masses.begin(), masses.end(), 0.0);
  double sum = 0;
  for (const auto position : positions) sum += masses[as_size(position)];
  return all > 0 ? sum / all : 0;
}

double fewest_with(std::vector<double> masses, double share) {
  std::sort(masses.begin(), masses.end(), std::greater<>());
  const double wanted = share * std::accumulate(masses.begin(), masses.end(), 0.0);
  double sum = 0;
  std::size_t count = 0;
  while (count < masses.size() && (count == 0 || sum < wanted)) sum += masses[count++];
  return static_cast<double>(count) / static_cast<double>(masses.size());
}

}  // namespace winnow::eval
