// SPDX-License-Identifier: Apache-2.0
#pragma once

// TriAttention's score from its formula: complex numbers in double, plain loops. Shares nothing with src/.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "base/rope.h"
#include "policy/reference.h"

namespace winnow::reference {

using Complex = std::vector<std::complex<double>>;  ///< [d / 2]

/// Pairs of a head's vector [dim].
inline Complex pairs_of(const float* head, int dim, const Rope& rope) {
  Complex out;
  const int rotated = static_cast<int>(rope.frequency.size());
  for (int f = 0; f < dim / 2; ++f) {
    const bool halves = rope.pairing == Rope::Pairing::halves && f < rotated;
    out.emplace_back(head[halves ? f : 2 * f], head[halves ? f + rotated : 2 * f + 1]);
  }
  return out;
}

/// Angle by which one position rotates each pair, in radians.
inline std::vector<double> frequencies(int dim, const Rope& rope) {
  std::vector<double> out(rope.frequency.begin(), rope.frequency.end());
  out.resize(static_cast<std::size_t>(dim / 2));
  return out;
}

/// Un-rotates the pairs of a key that was rotated to a position.
inline Complex unrotated(Complex key, double position, const std::vector<double>& omega) {
  for (std::size_t f = 0; f < key.size(); ++f) key[f] *= std::polar(1.0, -position * omega[f]);
  return key;
}

/// One query head's score of a key, `distance` tokens before the last token: both are before RoPE.
inline double trigonometric_score(const Complex& mean, const float* mean_lengths, const Complex& key,
                                  const std::vector<double>& omega, double distance, int future) {
  double all = 0;
  int count = 0;
  for (std::int64_t ahead = 1; ahead <= future; ahead *= 2, ++count) {
    for (std::size_t f = 0; f < key.size(); ++f) {
      const double phase = std::arg(mean[f]) - std::arg(key[f]);
      all +=
          std::abs(mean[f]) * std::abs(key[f]) * std::cos(omega[f] * (distance + static_cast<double>(ahead)) + phase);
      all += (mean_lengths[f] - std::abs(mean[f])) * std::abs(key[f]);
    }
  }
  return all / count;
}

/// Subtracts the mean and divides by the standard deviation.
inline std::vector<double> standardized(std::vector<double> x) {
  double mean = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  double square = 0;
  for (const double v : x) square += (v - mean) * (v - mean) / static_cast<double>(x.size());
  for (double& v : x) v = (v - mean) / std::max(1e-6, std::sqrt(square));
  return x;
}

/// Query statistics of one KV head's query heads, and the scores that they give to keys together.
struct TrigonometricGroup {
  const QueryStatistics& statistics;
  int first_query_head;
  int group;
  int dim;
  const Rope& rope;
  int future = 65536;
  bool largest = true;  ///< the largest of the group's scores, or else their mean

  /// `keys`: before RoPE, each at a distance before the last token.
  std::vector<double> scores(const std::vector<Complex>& keys, const std::vector<double>& distances) const {
    std::vector<double> out(keys.size());
    for (int g = 0; g < group; ++g) {
      const int head = first_query_head + g;
      const auto mean = pairs_of(statistics.mean.data() + head * dim, dim, rope);
      const float* const lengths = statistics.mean_lengths.data() + head * (dim / 2);
      std::vector<double> own;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        own.push_back(trigonometric_score(mean, lengths, keys[i], frequencies(dim, rope), distances[i], future));
      }
      own = standardized(own);
      for (std::size_t i = 0; i < keys.size(); ++i)
        out[i] = !largest ? out[i] + own[i] / group : g == 0 ? own[i] : std::max(out[i], own[i]);
    }
    return out;
  }
};

}  // namespace winnow::reference
