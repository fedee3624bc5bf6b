// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/kernels/decode_entries.h"
#include "device/kernels/decode_keys.h"
#include "device/kernels/decode_values.h"
#include "device/kernels/dispatch.h"
#include "device/kernels/parts.h"
#include "device/kernels/tile.h"

/// Products are m16n8k16 with query heads as rows. A block handles eight heads; rows 8 to 15 have the rounding errors
/// of the queries and probabilities in rows 0 to 7. So the factors are exact to 2^-16 (bf16) or 2^-21 (f16) at no extra
/// cost, since the kernel is bound by memory. Keys and values are loaded directly into registers.
namespace winnow::device {

inline constexpr int kDecodeHeads = 8;

/// Shared memory of a block: fragments of the queries, later reused for the warps' states; then the entries of an item.
template <int D>
struct DecodeShape {
  static constexpr int kQueryBytes = D / 16 * 32 * 16;
  static constexpr int kStates = kDecodeWarps * kDecodeHeads * (D + 2) * 4;
  static constexpr int kEntries = kQueryBytes > kStates ? kQueryBytes : kStates;
  static constexpr int bytes(bool listed) { return kEntries + (listed ? DecodeItem::kMost * 12 : 0); }
};

/// Softmax state of a warp's keys, for the query head of this thread's rows.
template <int D>
struct DecodeState {
  float out[D / 8][4];  ///< two columns each: of the rounded numbers, and of the rounding errors
  float largest;
  float sum;  ///< over this thread's keys

  WINNOW_DEVICE void clear() {
    WINNOW_UNROLL
    for (int i = 0; i < D / 8; ++i) {
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) out[i][e] = 0;
    }
    largest = kNever;
    sum = 0;
  }
};

/// Keys, Values and Entries are readers; 16 G keys are processed at once.
template <class Keys, class Values, class Entries, int D, int G>
class DecodeBlock {
 public:
  WINNOW_DEVICE DecodeBlock(const DecodeTask& task, const DecodeItem& item)
      : t_(task),
        item_(item),
        group_(task.heads / task.kv_heads),
        first_(block_y() * kDecodeHeads),
        lane_(thread() % 32),
        warp_(thread() / 32),
        entries_(item, shared_memory() + DecodeShape<D>::kEntries),
        keys_(task, item, lane_),
        values_(task, item, lane_) {}

  WINNOW_DEVICE void run() {
    entries_.fetch();
    int first = warp_ * kStep;
    if (first < item_.count) {
      keys_.load(key_rows(first));
      values_.load(value_rows(first));
    }
    pack_queries();
    sync_block();
    state_.clear();
    for (; first < item_.count; first += kDecodeWarps * kStep) take(first);
    sync_block();  // before the states replace the queries
    share_state();
    sync_block();
    fold();
  }

 private:
  static constexpr int kStep = 16 * G;
  static constexpr bool kTurned = requires(const Entries& e) { e.position(0); };

  WINNOW_DEVICE int head() const { return first_ + lane_ / 4; }  ///< within the group
  WINNOW_DEVICE Words* queries() const { return reinterpret_cast<Words*>(shared_memory()); }

  WINNOW_DEVICE auto key_rows(int first) const {
    return [=, this](int n) { return entries_.row(first + n * 8 + lane_ / 4); };
  }
  /// Entry e of this thread's four in a group: 2 (lane % 4), the next one, and those 8 after these.
  WINNOW_DEVICE int entry(int first, int group, int e) const {
    return first + group * 16 + lane_ % 4 * 2 + e % 2 + e / 2 * 8;
  }
  WINNOW_DEVICE auto value_rows(int first) const {
    return [=, this](int group, int e) { return entries_.row(entry(first, group, e)); };
  }

  /// Packs fragments of the queries, [D / 32][2][lane], shared by all warps.
  WINNOW_DEVICE void pack_queries() {
    const float by = packed_scale(t_.scale, t_.cap);
    for (int i = thread(); i < D / 16 * 32; i += kDecodeWarps * 32) {
      const int g = first_ + i % 32 / 4;
      const int at = keys_.octet(i / 64, i % 4) + i / 32 % 2 * 4;  // first of four elements
      float x[4] = {0, 0, 0, 0};
      if (g < group_ && at < t_.dim) {
        const std::size_t row = static_cast<std::size_t>(item_.row) * t_.heads + item_.kv_head * group_ + g;
        read_query(t_.q + row * t_.dim, at, x);
      }
      Words packed;
      split<typename Keys::Product>(x[0] * by, x[1] * by, packed.w[0], packed.w[1]);
      split<typename Keys::Product>(x[2] * by, x[3] * by, packed.w[2], packed.w[3]);
      queries()[i] = packed;
    }
  }

  /// Reads four elements of a query, rotated by the item's shift.
  WINNOW_DEVICE void read_query(const float* q, int at, float (&x)[4]) const {
    WINNOW_UNROLL
    for (int e = 0; e < 4; ++e) x[e] = q[at + e];
    if (item_.shift == 0 || at >= 2 * t_.angles.pairs) return;
    const Turn by(t_.angles, item_.shift);
    if (t_.angles.halves != 0) {
      const bool second = at >= t_.angles.pairs;
      float y[4];
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) y[e] = q[second ? at - t_.angles.pairs + e : at + t_.angles.pairs + e];
      if (second) {
        by.turn(at - t_.angles.pairs, y, x);
      } else {
        by.turn(at, x, y);
      }
    } else {
      const int octet = at / 8 * 8;
      float all[8];
      WINNOW_UNROLL
      for (int e = 0; e < 8; ++e) all[e] = q[octet + e];
      turn_adjacent(by, t_.angles, octet, all);
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) x[e] = at % 8 == 0 ? all[e] : all[4 + e];
    }
  }

  WINNOW_DEVICE void take(int first) {
    const int next = first + kDecodeWarps * kStep;
    float c[2 * G][4] = {};
    if constexpr (kTurned) {
      keys_.multiply(
          queries() + lane_, key_rows(first), [=, this](int n) { return entries_.position(first + n * 8 + lane_ / 4); },
          c);
    } else {
      keys_.multiply(queries() + lane_, key_rows(first), c);
    }
    if (next < item_.count) keys_.load(key_rows(next));
    float x[G][4];  // logits of this thread's entries
    WINNOW_UNROLL
    for (int group = 0; group < G; ++group) {
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) {
        x[group][e] = logit(c[group * 2 + e / 2][e % 2] + c[group * 2 + e / 2][e % 2 + 2], entry(first, group, e));
      }
    }
    std::uint32_t p[G][4];
    take_logits(x, p);
    values_.multiply(p, value_rows(first), state_.out);
    if (next < item_.count) values_.load(value_rows(next));
  }

  WINNOW_DEVICE float logit(float product, int at) const {
    if (at >= item_.count) return kNever;
    float x = product * entries_.factor(at);
    if (t_.cap > 0) x = capped(x, t_.cap);
    if (item_.probabilities != nullptr && head() < group_)
      item_.probabilities[static_cast<std::size_t>(head()) * item_.stride + at] = x;
    return x;
  }

  WINNOW_DEVICE void take_logits(const float (&x)[G][4], std::uint32_t (&p)[G][4]) {
    float top = state_.largest;
    WINNOW_UNROLL
    for (int i = 0; i < 4 * G; ++i) top = x[i / 4][i % 4] > top ? x[i / 4][i % 4] : top;
    WINNOW_UNROLL
    for (int lanes = 1; lanes < 4; lanes *= 2) {
      const float other = shuffle_xor(top, lanes);
      top = other > top ? other : top;
    }
    const float shrink = exp2(state_.largest - top);
    state_.largest = top;
    state_.sum *= shrink;
    WINNOW_UNROLL
    for (int i = 0; i < D / 8; ++i) {
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) state_.out[i][e] *= shrink;
    }
    WINNOW_UNROLL
    for (int group = 0; group < G; ++group) {
      float weight[4];
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) {
        weight[e] = exp2(x[group][e] - top);
        state_.sum += weight[e];
      }
      split<typename Values::Product>(weight[0], weight[1], p[group][0], p[group][1]);
      split<typename Values::Product>(weight[2], weight[3], p[group][2], p[group][3]);
    }
  }

  WINNOW_DEVICE float* states(int warp, int g) const {
    return reinterpret_cast<float*>(shared_memory()) + (warp * kDecodeHeads + g) * (D + 2);
  }

  /// Writes the warp's output, largest logit and sum to shared memory.
  WINNOW_DEVICE void share_state() {
    WINNOW_UNROLL
    for (int lanes = 1; lanes < 4; lanes *= 2) state_.sum += shuffle_xor(state_.sum, lanes);
    float* const to = states(warp_, lane_ / 4);
    WINNOW_UNROLL
    for (int i = 0; i < D / 8; ++i) {
      WINNOW_UNROLL
      for (int e = 0; e < 2; ++e) {
        to[Values::octet(i / 8, lane_ % 4 * 2 + e) + i % 8] = state_.out[i][e] + state_.out[i][e + 2];
      }
    }
    if (lane_ % 4 == 0) {
      to[D] = state_.largest;
      to[D + 1] = state_.sum;
    }
  }

  /// Merges the states of the warps into the item's.
  WINNOW_DEVICE void fold() const {
    const int heads = group_ - first_ < kDecodeHeads ? group_ - first_ : kDecodeHeads;
    for (int i = thread(); i < heads * (t_.dim + 2); i += kDecodeWarps * 32) {
      const int g = i / (t_.dim + 2);
      const int at = i % (t_.dim + 2);
      float largest = kNever;
      WINNOW_UNROLL
      for (int w = 0; w < kDecodeWarps; ++w) largest = states(w, g)[D] > largest ? states(w, g)[D] : largest;
      float folded = 0;
      WINNOW_UNROLL
      for (int w = 0; w < kDecodeWarps; ++w) {
        folded += states(w, g)[at < t_.dim ? at : D + 1] * exp2(states(w, g)[D] - largest);
      }
      const Parts parts(t_);
      const std::size_t place = parts.place(block_x(), first_ + g);
      (at < t_.dim    ? parts.out(place)[at]
       : at == t_.dim ? parts.largest(place)
                      : parts.sum(place)) = at == t_.dim ? largest : folded;
    }
  }

  const DecodeTask& t_;
  const DecodeItem item_;
  int group_;
  int first_;  ///< first head of the block, within the group
  int lane_;
  int warp_;
  Entries entries_;
  Keys keys_;
  Values values_;
  DecodeState<D> state_;
};

}  // namespace winnow::device
