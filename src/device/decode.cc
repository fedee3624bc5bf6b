// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "device/calls.h"
#include "device/dispatch.h"
#include "device/merge.h"
#include "device/parts.h"
#include "device/rows.h"
#include "device/tile.h"

/// Products are m16n8k16 with query heads as rows. A block takes eight heads; rows 8 to 15 hold what is left of each
/// query, and of each probability, after the rounding of rows 0 to 7. So the factors are exact to 2^-16 (bf16) or 2^-21
/// (f16), and cost nothing more, because this kernel waits for memory. Keys and values go from memory to registers:
/// which of a row's elements a product's k-th column is, is free as long as both factors agree, so each thread takes 16
/// bytes at a time.
namespace winnow::device {
namespace {

inline constexpr int kHeads = 8;
inline constexpr int kWarps = 4;
inline constexpr int kStep = 16;  ///< keys that a warp takes at once

template <int D>
struct DecodeShape {
  static constexpr int kQueryBytes = D / 16 * 32 * 16;
  static constexpr int kStates = kWarps * kHeads * (D + 2) * 4;
  static constexpr int kShared = kQueryBytes > kStates ? kQueryBytes : kStates;
};

/// Everything that a warp has seen of its keys, for the query head of this thread's rows.
template <int D>
struct DecodeState {
  float out[D / 8][4];  ///< of eight elements of 64, of two columns: of what is rounded, and of what is left
  float largest;
  float sum;  ///< of this thread's keys
};

template <class K, class V, int D>
class DecodeBlock {
 public:
  using T = typename K::Product;

  WINNOW_DEVICE DecodeBlock(const DecodeTask& task, const DecodeItem& item)
      : t_(task),
        item_(item),
        group_(task.heads / task.kv_heads),
        first_(block_y() * kHeads),
        lane_(thread() % 32),
        warp_(thread() / 32),
        keys_(item.keys, item.key_scales, task.dim),
        values_(item.values, item.value_scales, task.dim) {}

  WINNOW_DEVICE void run() {
    int key = warp_ * kStep;
    if (key < item_.count) {
      load_keys(key);
      if constexpr (kValuesAhead) load_values(key);
    }
    pack_queries();
    sync_block();
    WINNOW_UNROLL
    for (int i = 0; i < D / 8; ++i) {
      WINNOW_UNROLL
      for (int e = 0; e < 4; ++e) state_.out[i][e] = 0;
    }
    state_.largest = kNever;
    state_.sum = 0;
    for (; key < item_.count; key += kWarps * kStep) take(key);
    sync_block();  // before the states take the place of the queries
    share_state();
    sync_block();
    fold();
  }

 private:
  /// Values are on their way while their keys are worked on, where there are registers for both.
  static constexpr bool kValuesAhead = D <= 128;

  WINNOW_DEVICE int head() const { return first_ + lane_ / 4; }  ///< within the group
  WINNOW_DEVICE Words* queries() const { return reinterpret_cast<Words*>(shared_memory()); }

  /// Fragments of the queries, [D / 16][lane], the same for all warps.
  WINNOW_DEVICE void pack_queries() {
    const float by = packed_scale(t_.scale, t_.cap);
    for (int i = thread(); i < D / 16 * 32; i += kWarps * 32) {
      const int g = first_ + i % 32 / 4;
      const int at = i / 64 * 32 + i % 4 * 8 + i / 32 % 2 * 4;  // first of four elements
      float x[4] = {0, 0, 0, 0};
      if (g < group_ && at < t_.dim) {
        const std::size_t row = static_cast<std::size_t>(item_.row) * t_.heads + item_.kv_head * group_ + g;
        WINNOW_UNROLL
        for (int e = 0; e < 4; ++e) x[e] = t_.q[row * t_.dim + at + e] * by;
      }
      Words packed;
      split(x[0], x[1], packed.w[0], packed.w[1]);
      split(x[2], x[3], packed.w[2], packed.w[3]);
      queries()[i] = packed;
    }
  }

  /// Two numbers, and what is left of them after rounding.
  WINNOW_DEVICE static void split(float x, float y, std::uint32_t& rounded, std::uint32_t& rest) {
    rounded = T::pack(x, y);
    rest = T::pack(x - T::low(rounded), y - T::high(rounded));
  }

  WINNOW_DEVICE int existing(int key) const { return key < item_.count ? key : item_.count - 1; }

  WINNOW_DEVICE void load_keys(int first) {
    WINNOW_UNROLL
    for (int chunk = 0; chunk < D / 32; ++chunk) {
      const int at = chunk * 32 + lane_ % 4 * 8;
      WINNOW_UNROLL
      for (int n = 0; n < 2; ++n) {
        if (at < t_.dim) loaded_keys_[chunk][n] = keys_.load(existing(first + n * 8 + lane_ / 4), at);
      }
    }
  }

  /// Entry e of this thread's four: first + 2 (lane % 4), the one after it, and those 8 after these.
  WINNOW_DEVICE int entry(int first, int e) const { return first + lane_ % 4 * 2 + e % 2 + e / 2 * 8; }

  WINNOW_DEVICE void load_values(int first) {
    WINNOW_UNROLL
    for (int part = 0; part < D / 64; ++part) load_values(first, part, loaded_values_[kValuesAhead ? part : 0]);
  }
  WINNOW_DEVICE void load_values(int first, int part, typename V::Loaded (&to)[4]) const {
    const int at = part * 64 + lane_ / 4 * 8;
    WINNOW_UNROLL
    for (int e = 0; e < 4; ++e) {
      if (at < t_.dim) to[e] = values_.load(existing(entry(first, e)), at);
    }
  }

  WINNOW_DEVICE void take(int first) {
    const int next = first + kWarps * kStep;
    float x[4];  // logits of this thread's entries
    multiply_by_keys(x);
    if (next < item_.count) load_keys(next);
    WINNOW_UNROLL
    for (int e = 0; e < 4; ++e) {
      if (t_.cap > 0) x[e] = capped(x[e], t_.cap);
      if (entry(first, e) >= item_.count) {
        x[e] = kNever;
      } else if (item_.probabilities != nullptr && head() < group_) {
        item_.probabilities[static_cast<std::size_t>(head()) * item_.stride + entry(first, e)] = x[e];
      }
    }
    std::uint32_t p[4];
    take_logits(x, p);
    WINNOW_UNROLL
    for (int part = 0; part < D / 64; ++part) {
      if constexpr (!kValuesAhead) load_values(first, part, loaded_values_[0]);
      multiply_by_values(part, loaded_values_[kValuesAhead ? part : 0], p);
    }
    if constexpr (kValuesAhead) {
      if (next < item_.count) load_values(next);
    }
  }

  WINNOW_DEVICE void multiply_by_keys(float (&x)[4]) const {
    float c[2][4] = {};
    WINNOW_UNROLL
    for (int chunk = 0; chunk < D / 32; ++chunk) {
      Words k[2] = {};
      WINNOW_UNROLL
      for (int n = 0; n < 2; ++n) {
        if (chunk * 32 + lane_ % 4 * 8 < t_.dim) k[n] = K::pairs(loaded_keys_[chunk][n]);
      }
      WINNOW_UNROLL
      for (int half = 0; half < 2; ++half) {
        const Words a = queries()[(chunk * 2 + half) * 32 + lane_];
        WINNOW_UNROLL
        for (int n = 0; n < 2; ++n) T::multiply(c[n], a.w, k[n].w[2 * half], k[n].w[2 * half + 1]);
      }
    }
    WINNOW_UNROLL
    for (int e = 0; e < 4; ++e) x[e] = c[e / 2][e % 2] + c[e / 2][e % 2 + 2];
  }

  WINNOW_DEVICE void take_logits(const float (&x)[4], std::uint32_t (&p)[4]) {
    float top = state_.largest;
    WINNOW_UNROLL
    for (const float logit : x) top = logit > top ? logit : top;
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
    float weight[4];
    WINNOW_UNROLL
    for (int e = 0; e < 4; ++e) {
      weight[e] = exp2(x[e] - top);
      state_.sum += weight[e];
    }
    split(weight[0], weight[1], p[0], p[1]);
    split(weight[2], weight[3], p[2], p[3]);
  }

  WINNOW_DEVICE void multiply_by_values(int part, const typename V::Loaded (&loaded)[4], const std::uint32_t (&p)[4]) {
    Words v[4] = {};  // of this thread's entries
    WINNOW_UNROLL
    for (int e = 0; e < 4; ++e) {
      if (part * 64 + lane_ / 4 * 8 < t_.dim) v[e] = V::pairs(loaded[e]);
    }
    WINNOW_UNROLL
    for (int i = 0; i < 8; ++i) {
      const std::uint32_t which = i % 2 == 0 ? 0x5410U : 0x7632U;  // the low halves of both, or the high ones
      T::multiply(state_.out[part * 8 + i], p, bytes_of(v[0].w[i / 2], v[1].w[i / 2], which),
                  bytes_of(v[2].w[i / 2], v[3].w[i / 2], which));
    }
  }

  WINNOW_DEVICE float* states(int warp, int g) const {
    return reinterpret_cast<float*>(shared_memory()) + (warp * kHeads + g) * (D + 2);
  }

  /// Leaves the warp's output, largest logit and sum where all warps see them.
  WINNOW_DEVICE void share_state() {
    WINNOW_UNROLL
    for (int lanes = 1; lanes < 4; lanes *= 2) state_.sum += shuffle_xor(state_.sum, lanes);
    float* const to = states(warp_, lane_ / 4);
    WINNOW_UNROLL
    for (int i = 0; i < D / 8; ++i) {
      WINNOW_UNROLL
      for (int e = 0; e < 2; ++e) {
        to[i / 8 * 64 + (lane_ % 4 * 2 + e) * 8 + i % 8] = state_.out[i][e] + state_.out[i][e + 2];
      }
    }
    if (lane_ % 4 == 0) {
      to[D] = state_.largest;
      to[D + 1] = state_.sum;
    }
  }

  /// Folds the states of the warps into that of the item.
  WINNOW_DEVICE void fold() const {
    const int heads = group_ - first_ < kHeads ? group_ - first_ : kHeads;
    for (int i = thread(); i < heads * (t_.dim + 2); i += kWarps * 32) {
      const int g = i / (t_.dim + 2);
      const int at = i % (t_.dim + 2);
      float largest = kNever;
      WINNOW_UNROLL
      for (int w = 0; w < kWarps; ++w) largest = states(w, g)[D] > largest ? states(w, g)[D] : largest;
      float folded = 0;
      WINNOW_UNROLL
      for (int w = 0; w < kWarps; ++w) {
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
  int first_;  ///< of the block's heads, within the group
  int lane_;
  int warp_;
  K keys_;
  V values_;
  typename K::Loaded loaded_keys_[D / 32][2];
  typename V::Loaded loaded_values_[kValuesAhead ? D / 64 : 1][4];
  DecodeState<D> state_;
};

template <class K, class V, int D>
WINNOW_KERNEL(kWarps * 32)
decode_kernel(const DecodeTask task) {
  DecodeBlock<K, V, D>(task, task.items[block_x()]).run();
}

template <class K, class V>
const char* decode_items(const DecodeTask& task, void* stream) {
  return for_dim(task.dim, [&]<int D>() {
    const int head_blocks = (task.heads / task.kv_heads + kHeads - 1) / kHeads;
    const Grid grid{task.item_count, head_blocks, kWarps * 32, DecodeShape<D>::kShared};
    return launch<decode_kernel<K, V, D>>(grid, stream, task);
  });
}

/// The pairs of elements of keys and values that lanes may have.
const char* decode_any(const DecodeTask& task, void* stream) {
  const auto are = [&](Element keys, Element values) {
    return task.key_element == keys && task.value_element == values;
  };
  if (are(Element::f16, Element::f16)) return decode_items<PlainRows<F16>, PlainRows<F16>>(task, stream);
  if (are(Element::bf16, Element::bf16)) return decode_items<PlainRows<Bf16>, PlainRows<Bf16>>(task, stream);
  if (task.dim % 32 != 0) return "quantized rows must be of a multiple of 32 elements";
  if (are(Element::q8_0, Element::q8_0)) return decode_items<Q8Rows, Q8Rows>(task, stream);
  if (are(Element::q8_0, Element::f16)) return decode_items<Q8Rows, PlainRows<F16>>(task, stream);
  if (are(Element::q8_0, Element::q4_0)) return decode_items<Q8Rows, Q4Rows>(task, stream);
  if (are(Element::q4_0, Element::q4_0)) return decode_items<Q4Rows, Q4Rows>(task, stream);
  return "lanes on a device have f16, bf16, q8_0 or q4_0 for keys and values, or q8_0 with f16 or q4_0";
}

}  // namespace

const char* decode(const DecodeTask& task, void* stream) {
  const char* const problem = decode_any(task, stream);
  return problem != nullptr ? problem : merge(task, stream);
}

}  // namespace winnow::device
