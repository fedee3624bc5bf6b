// SPDX-License-Identifier: Apache-2.0
#include "attention/cpu/block.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/block.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, which selects the target of each compilation.
#include <hwy/highway.h>

#include "attention/cpu/bf16.h"
#include "attention/cpu/exp2-inl.h"
#include "attention/cpu/f32.h"
#include "attention/cpu/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace winnow::attention::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr float kNothing = -std::numeric_limits<float>::infinity();

/// Writes the queries to strips and initialises the softmax with only the sink, whose value is 0.
void begin_block(const Block& b) {
  const float scale = b.query_scale();
  std::fill_n(b.q_strips, static_cast<std::ptrdiff_t>(b.width) * b.queries, 0.0F);
  std::fill_n(b.o_strips, static_cast<std::ptrdiff_t>(b.width) * b.queries, 0.0F);
  std::fill_n(b.base, b.queries, kNothing);
  std::fill_n(b.sum, b.queries, 0.0F);
  for (int g = 0; g < b.group; ++g) {
    for (int t = 0; t < b.tokens; ++t) {
      const int query = g * b.tokens + t;
      const float* const q =
          b.q + static_cast<std::ptrdiff_t>(t) * b.token_stride + static_cast<std::ptrdiff_t>(g) * b.head_dim;
      float* const to = b.q_strips + b.first_of(query);
      for (int i = 0; i < b.head_dim; ++i) to[static_cast<std::ptrdiff_t>(i) * b.strip] = q[i] * scale;
      if (b.sink_logits == nullptr) continue;
      b.base[query] = b.sink_logits[g] * std::numbers::log2e_v<float>;
      b.sum[query] = 1;
    }
  }
}

/// Sets the range of keys that each query sees.
void set_limits(const Block& b) {
  std::fill_n(b.limit, b.queries, static_cast<float>(b.leading[0] - 1));
  if (b.from != nullptr) std::fill_n(b.first, b.queries, static_cast<float>(b.from[0]));
  for (int query = 0; query < b.group * b.tokens; ++query) {
    b.limit[query] = static_cast<float>(b.leading[query % b.tokens] - 1);
    if (b.from != nullptr) b.first[query] = static_cast<float>(b.from[query % b.tokens]);
  }
}

void fold_tiles(const Block& b) {
  set_limits(b);
  if (b.compute_type == ComputeType::f32) {
    run_tiles_f32(b);
  } else {
    run_tiles_bf16(b);
  }
}

/// Adds a key and its value to a query's softmax.
void fold_row(const Block& b, int query, const float* HWY_RESTRICT key, const float* HWY_RESTRICT value) {
  const float* const q = b.q_strips + b.first_of(query);
  float s = 0;
  for (int i = 0; i < b.head_dim; ++i) s += q[static_cast<std::ptrdiff_t>(i) * b.strip] * key[i];
  if (b.cap > 0) s = b.cap_of_powers() * std::tanh(s);
  const float top = std::max(b.base[query], s);
  if (top == kNothing) return;
  const float shrink = std::exp2(b.base[query] - top);
  const float p = std::exp2(s - top);
  b.base[query] = top;
  b.sum[query] = b.sum[query] * shrink + p;
  float* const out = b.o_strips + b.first_of(query);
  for (int i = 0; i < b.head_dim; ++i) {
    float& o = out[static_cast<std::ptrdiff_t>(i) * b.strip];
    o = o * shrink + p * value[i];
  }
}

/// Adds rows that only a single token sees, in addition to the leading rows.
void fold_own(const Block& b) {
  for (int t = 0; t < b.tokens; ++t) {
    if (b.own[t] < 0) continue;
    float* const key = b.tile;
    float* const value = b.tile + b.width;
    decode_row_of(b.keys, b.own[t], key);
    decode_row_of(b.values, b.own[t], value);
    for (int g = 0; g < b.group; ++g) fold_row(b, g * b.tokens + t, key, value);
  }
}

/// Natural logarithms of the sums.
void write_logsums(const Block& b) {
  for (int g = 0; g < b.group; ++g) {
    for (int t = 0; t < b.tokens; ++t) {
      const int query = g * b.tokens + t;
      b.logsum[static_cast<std::ptrdiff_t>(t) * b.logsum_stride + g] =
          (b.base[query] + std::log2(b.sum[query])) * std::numbers::ln2_v<float>;
    }
  }
}

/// Divides by the sums and writes the strips to `out`.
void end_block(const Block& b) {
  if (b.logsum != nullptr) write_logsums(b);
  for (int query = 0; query < b.queries; ++query) b.sum[query] = b.sum[query] > 0 ? 1.0F / b.sum[query] : 0.0F;
  for (int g = 0; g < b.group; ++g) {
    for (int t = 0; t < b.tokens; ++t) {
      const int query = g * b.tokens + t;
      float* const out =
          b.out + static_cast<std::ptrdiff_t>(t) * b.token_stride + static_cast<std::ptrdiff_t>(g) * b.head_dim;
      const float* const o = b.o_strips + b.first_of(query);
      for (int i = 0; i < b.head_dim; ++i) out[i] = o[static_cast<std::ptrdiff_t>(i) * b.strip] * b.sum[query];
    }
  }
}

/// Retained tiles are relative to the base at their time. Sets the factors that rescale them to the final base and
/// divide by the sum.
void weigh_retained(const Block& b) {
  const D d;
  const int step = static_cast<int>(hn::Lanes(d));
  for (int tile = b.first_retained; tile < b.end_retained; ++tile) {
    for (int query = 0; query < b.queries; query += step) {
      float* const at = b.weight_of(tile) + query;
      const V then = hn::Load(d, at);
      const V shrink = exp2_of_negative(d, hn::Sub(then, hn::Load(d, b.base + query)));
      const V nothing = hn::Zero(d);
      hn::Store(
          hn::IfThenElse(hn::Eq(then, hn::Set(d, kNothing)), nothing, hn::Mul(shrink, hn::Load(d, b.sum + query))), d,
          at);
    }
  }
}

void run(const Block& b) {
  begin_block(b);
  if (b.past != nullptr) fold_tiles(*b.past);
  fold_tiles(b);
  if (b.own != nullptr) fold_own(b);
  end_block(b);
  if (b.past != nullptr) weigh_retained(*b.past);
  weigh_retained(b);
}

}  // namespace winnow::attention::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace winnow::attention::cpu {

HWY_EXPORT(run);

std::size_t work_bytes(const Block& b) {
  return b.compute_type == ComputeType::bf16 ? bf16_bytes(b.width, b.queries) : f32_bytes(b.queries);
}

void run_block(const Block& block) { HWY_DYNAMIC_DISPATCH(run)(block); }

}  // namespace winnow::attention::cpu
#endif
