// SPDX-License-Identifier: Apache-2.0
#include "network/bf16_rows.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "network/bf16_rows.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/highway.h>

#include "base/as_size.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::network::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<std::uint32_t>;

/// Adds half of the last place and truncates; NaN stays NaN.
HWY_INLINE hn::Vec<D> rounded(hn::Vec<D> bits) {
  const D d;
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto up = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFF))));
  const auto nan = hn::RebindMask(d, hn::IsNaN(hn::BitCast(hn::RebindToFloat<D>(), bits)));
  return hn::IfThenElse(nan, hn::Or(hn::ShiftRight<16>(bits), hn::Set(d, 0x40)), up);
}

void round_some(const float* from, std::ptrdiff_t n, std::uint16_t* to) {
  const D d;
  const hn::Rebind<std::uint16_t, D> half;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  std::ptrdiff_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(hn::DemoteTo(half, hn::BitCast(hn::RebindToSigned<D>(),
                                              rounded(hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(from + i))))),
               half, to + i);
  }
  for (; i < n; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from + i, sizeof(bits));
    to[i] = static_cast<std::uint16_t>(hn::GetLane(rounded(hn::Set(d, bits))));
  }
}

/// Keeps pairs of neighbouring inputs together, and puts the pairs of all outputs side by side, by transposing squares
/// of 4 pairs by 4 outputs. Writes are sequential, which matters most here.
void pack_pairs(const std::uint16_t* rows, std::ptrdiff_t stride, std::ptrdiff_t inputs, std::uint16_t* to) {
  constexpr std::ptrdiff_t kNextPair = std::ptrdiff_t{kBlockOutputs} * 2;
#if HWY_TARGET == HWY_SCALAR
  for (std::ptrdiff_t input = 0; input < inputs; input += 2) {
    for (int output = 0; output < kBlockOutputs; ++output)
      std::memcpy(to + input / 2 * kNextPair + output * 2, rows + output * stride + input, 4);
  }
#else
  const hn::FixedTag<std::uint16_t, 8> d;
  const hn::Repartition<std::uint32_t, decltype(d)> pairs;
  const hn::Repartition<std::uint64_t, decltype(d)> twos;
  for (std::ptrdiff_t input = 0; input < inputs; input += 8) {
    for (int output = 0; output < kBlockOutputs; output += 4) {
      const auto row = [&](int i) { return hn::BitCast(pairs, hn::LoadU(d, rows + (output + i) * stride + input)); };
      const auto lower01 = hn::BitCast(twos, hn::InterleaveLower(pairs, row(0), row(1)));
      const auto upper01 = hn::BitCast(twos, hn::InterleaveUpper(pairs, row(0), row(1)));
      const auto lower23 = hn::BitCast(twos, hn::InterleaveLower(pairs, row(2), row(3)));
      const auto upper23 = hn::BitCast(twos, hn::InterleaveUpper(pairs, row(2), row(3)));
      const auto store = [&](int pair, auto v) {
        hn::StoreU(hn::BitCast(d, v), d, to + (input / 2 + pair) * kNextPair + output * 2);
      };
      store(0, hn::InterleaveLower(twos, lower01, lower23));
      store(1, hn::InterleaveUpper(twos, lower01, lower23));
      store(2, hn::InterleaveLower(twos, upper01, upper23));
      store(3, hn::InterleaveUpper(twos, upper01, upper23));
    }
  }
#endif
}

}  // namespace winnow::network::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::network {

HWY_EXPORT(round_some);
HWY_EXPORT(pack_pairs);

void round_row(const float* from, std::ptrdiff_t n, std::ptrdiff_t padded, std::uint16_t* to) {
  HWY_DYNAMIC_DISPATCH(round_some)(from, n, to);
  std::memset(to + n, 0, as_size(padded - n) * sizeof(std::uint16_t));
}

void pack_rows(const std::uint16_t* rows, std::ptrdiff_t stride, std::ptrdiff_t inputs, std::uint16_t* packed) {
  HWY_DYNAMIC_DISPATCH(pack_pairs)(rows, stride, inputs, packed);
}

}  // namespace winnow::network
#endif
