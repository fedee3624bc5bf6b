// SPDX-License-Identifier: Apache-2.0
#include "policy/redundancy.h"

#include <algorithm>
#include <vector>

#include "attention/products.h"
#include "base/as_size.h"
#include "policy/rows.h"

namespace winnow::policy {

namespace {

constexpr int kTile = 256;  ///< keys that are compared with the same number of others at once
constexpr float kSimilar = 0.5F;

/// Reads keys by tiles and scales them to length 1. Keys of length 0 stay.
class UnitKeys {
 public:
  UnitKeys(int n, int head_dim, const KeyRows& keys) : dim_(as_size(head_dim)), keys_(keys), scales_(as_size(n), 1) {
    for (int first = 0; first < n; first += kTile) {
      const int count = std::min(kTile, n - first);
      const auto rows = tile(first, count);
      for (int i = 0; i < count; ++i) {
        const double length = norm(std::span(rows).subspan(as_size(i) * dim_, dim_));
        scales_[first + i] = length > 0 ? static_cast<float>(1 / length) : 0;
      }
    }
  }

  /// Keys [first, first + count), [count][d].
  std::vector<float> tile(int first, int count) const {
    std::vector<float> out(as_size(count) * dim_);
    keys_(first, count, out);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] *= scales_[as_size(first) + i / dim_];
    return out;
  }

 private:
  std::size_t dim_;
  const KeyRows& keys_;
  CountedVector<float> scales_;
};

/// Adds one key's cosines with the keys from `first` on to their sums, except for itself and the last key similar to
/// it. `last`: index of that key, negative if none was found yet.
void add_cosines(std::span<float> cosines, int key, int first, int& last, std::span<double> sums) {
  const int count = static_cast<int>(cosines.size());
  if (key >= first && key < first + count) cosines[key - first] = 0;
  for (int j = count - 1; j >= 0 && last < 0; --j) {
    if (cosines[j] <= kSimilar) continue;
    last = first + j;
    cosines[j] = 0;
  }
  for (int j = 0; j < count; ++j) sums[first + j] += cosines[j];
}

}  // namespace

/// Goes through tiles of the other keys from the last to the first, so that the first similar key that is found is the
/// last one.
CountedVector<double> redundancy(int n, int head_dim, const KeyRows& keys) {
  CountedVector<double> sums(as_size(n));
  const UnitKeys unit(n, head_dim, keys);
  std::vector<float> cosines;
  for (int top = 0; top < n; top += kTile) {
    const int rows = std::min(kTile, n - top);
    const auto left = unit.tile(top, rows);
    std::vector<int> last(as_size(rows), -1);
    for (int begin = (n - 1) / kTile * kTile; begin >= 0; begin -= kTile) {
      const int count = std::min(kTile, n - begin);
      const attention::PackedRows right(unit.tile(begin, count), head_dim);
      const auto stride = as_size(right.stride());
      cosines.resize(as_size(rows) * stride);
      right.multiply(left, cosines);
      for (int i = 0; i < rows; ++i) {
        add_cosines(std::span(cosines).subspan(as_size(i) * stride, as_size(count)), top + i, begin, last[i], sums);
      }
    }
  }
  for (double& sum : sums) sum /= n;
  return sums;
}

std::size_t redundancy_bytes(int n) { return as_size(n) * (sizeof(double) + sizeof(float)); }

}  // namespace winnow::policy
