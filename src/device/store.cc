// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "device/calls.h"
#include "device/primitives.h"

namespace winnow::device {
namespace {

inline constexpr int kStoreWarps = 8;

/// Reads one element of a row.
template <Element From>
WINNOW_DEVICE float element_of(const void* row, int at) {
  if constexpr (From == Element::f32) {
    return static_cast<const float*>(row)[at];
  } else {
    const std::uint32_t u = static_cast<const std::uint16_t*>(row)[at];
    return From == Element::f16 ? F16::low(u) : Bf16::low(u);
  }
}

WINNOW_DEVICE float magnitude(float x) { return x < 0 ? -x : x; }

/// A warp encodes one row, 32 elements at a time.
template <Element From>
class StoreRow {
 public:
  WINNOW_DEVICE StoreRow(const StoreTask& task, const StoredRow& row) : t_(task), row_(row), lane_(thread() % 32) {}

  WINNOW_DEVICE void run() const {
    for (int first = 0; first < t_.dim; first += 32) {
      const int at = first + lane_;
      const float x = at < t_.dim ? turned(at) : 0;
      if (t_.bad != nullptr && !(magnitude(x) <= 3.4028234e38F)) raise_flag(t_.bad);
      switch (t_.element) {
        case Element::f32:
          if (at < t_.dim) static_cast<float*>(row_.to)[at] = x;
          break;
        case Element::f16:
          if (at < t_.dim) static_cast<std::uint16_t*>(row_.to)[at] = static_cast<std::uint16_t>(F16::pack(x, 0));
          break;
        case Element::bf16:
          if (at < t_.dim) static_cast<std::uint16_t*>(row_.to)[at] = static_cast<std::uint16_t>(Bf16::pack(x, 0));
          break;
        case Element::q8_0:
          store_q8(first, x);
          break;
        case Element::q4_0:
          store_q4(first, x);
          break;
      }
    }
  }

 private:
  /// Element `at`, rotated.
  WINNOW_DEVICE float turned(int at) const {
    const float x = element_of<From>(row_.from, at);
    if (row_.turn < 0 || t_.angles == nullptr || at >= 2 * t_.pairs) return x;
    const int pair = t_.halves != 0 ? at % t_.pairs : at / 2;
    const bool second = t_.halves != 0 ? at >= t_.pairs : at % 2 == 1;
    const int step = t_.halves != 0 ? t_.pairs : 1;
    const float other = element_of<From>(row_.from, second ? at - step : at + step);
    const float* const angle = t_.angles + (static_cast<std::size_t>(row_.turn) * t_.pairs + pair) * 2;
    return second ? x * angle[0] + other * angle[1] : x * angle[0] - other * angle[1];
  }

  WINNOW_DEVICE void store_scale(int first, float scale) const {
    if (lane_ == 0)
      static_cast<std::uint16_t*>(row_.scales)[first / 32] = static_cast<std::uint16_t>(F16::pack(scale, 0));
  }

  WINNOW_DEVICE void store_q8(int first, float x) const {
    float most = magnitude(x);
    WINNOW_UNROLL
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      const float other = shuffle_xor(most, lanes);
      most = other > most ? other : most;
    }
    const float scale = most / 127;
    store_scale(first, scale);
    static_cast<std::int8_t*>(row_.to)[first + lane_] =
        static_cast<std::int8_t>(roundf(x * (scale > 0 ? 1 / scale : 0)));
  }

  /// The first element of the largest magnitude stands for -8.
  WINNOW_DEVICE void store_q4(int first, float x) const {
    float most = x;
    auto place = static_cast<float>(lane_);
    WINNOW_UNROLL
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      const float other = shuffle_xor(most, lanes);
      const float there = shuffle_xor(place, lanes);
      const bool more = magnitude(other) > magnitude(most) || (magnitude(other) == magnitude(most) && there < place);
      most = more ? other : most;
      place = more ? there : place;
    }
    const float scale = most / -8;
    store_scale(first, scale);
    const auto n = static_cast<int>(x * (scale != 0 ? 1 / scale : 0) + 8.5F);
    const auto nibble = static_cast<std::uint32_t>(n < 15 ? n : 15);
    // Elements 2 i and 2 i + 1 of eight are nibbles i and i + 4 of their word.
    const int e = lane_ % 8;
    auto word = shared_words(nibble << 4 * (e / 2 + e % 2 * 4));
    if (e == 0) static_cast<std::uint32_t*>(row_.to)[(first + lane_) / 8] = word;
  }

  /// All bits of eight lanes.
  WINNOW_DEVICE static std::uint32_t shared_words(std::uint32_t mine) {
    WINNOW_UNROLL
    for (int lanes = 1; lanes < 8; lanes *= 2) mine |= shuffle_xor(mine, lanes);
    return mine;
  }

  const StoreTask& t_;
  const StoredRow& row_;
  int lane_;
};

template <Element From>
WINNOW_KERNEL(kStoreWarps * 32)
store_kernel(const StoreTask task) {
  const int row = block_x() * kStoreWarps + thread() / 32;
  if (row < task.count) StoreRow<From>(task, task.rows[row]).run();
}

}  // namespace

const char* store(const StoreTask& task, void* stream) {
  const bool quantized = task.element == Element::q8_0 || task.element == Element::q4_0;
  if (quantized && task.dim % 32 != 0) return "quantized rows must be of a multiple of 32 elements";
  const Grid grid{(task.count + kStoreWarps - 1) / kStoreWarps, 1, kStoreWarps * 32, 0};
  switch (task.source) {
    case Element::f32:
      return launch<store_kernel<Element::f32>>(grid, stream, task);
    case Element::f16:
      return launch<store_kernel<Element::f16>>(grid, stream, task);
    case Element::bf16:
      return launch<store_kernel<Element::bf16>>(grid, stream, task);
    default:
      return "rows that are stored must be f32, f16 or bf16";
  }
}

}  // namespace winnow::device
