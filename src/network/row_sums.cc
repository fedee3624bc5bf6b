// SPDX-License-Identifier: Apache-2.0
#include "network/row_sums.h"

#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "network/row_sums.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace winnow::network::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

/// Uses two accumulators per sum, which hides the latency of additions.
RowSums sums_of_row(const float* row, std::size_t n) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<D> absolute[2] = {hn::Zero(d), hn::Zero(d)};
  hn::Vec<D> squares[2] = {hn::Zero(d), hn::Zero(d)};
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    HWY_UNROLL(2)
    for (std::size_t k = 0; k < 2; ++k) {
      const auto x = hn::LoadU(d, row + i + k * lanes);
      absolute[k] = hn::Add(absolute[k], hn::Abs(x));
      squares[k] = hn::MulAdd(x, x, squares[k]);
    }
  }
  const auto sum = [&](const hn::Vec<D>* both) { return hn::GetLane(hn::SumOfLanes(d, hn::Add(both[0], both[1]))); };
  RowSums out{sum(absolute), sum(squares)};
  for (; i < n; ++i) {
    out.absolute += std::fabs(row[i]);
    out.squares += row[i] * row[i];
  }
  return out;
}

}  // namespace winnow::network::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::network {

HWY_EXPORT(sums_of_row);

RowSums sums_of(std::span<const float> row) { return HWY_DYNAMIC_DISPATCH(sums_of_row)(row.data(), row.size()); }

}  // namespace winnow::network
#endif
