// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "attention/cpu/attention.h"
#include "reference.h"
#include "support/team.h"

namespace winnow::attention {

using test::on_team;

inline std::size_t z(int n) { return static_cast<std::size_t>(n); }

/// Calls `test` once for each instruction set of this machine that the kernels were compiled for.
inline void on_every_target(const std::function<void()>& test) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    test();
    hwy::SetSupportedTargetsForTest(0);
    if (testing::Test::HasFailure()) return;  // the other targets would only repeat it
  }
}

/// The types in which prefill can multiply on this machine.
inline std::vector<ComputeType> all_products() {
  std::vector<ComputeType> out = {ComputeType::f32};
  if (supports(ComputeType::bf16)) out.push_back(ComputeType::bf16);
  return out;
}

inline const char* name_of(ComputeType compute_type) { return compute_type == ComputeType::f32 ? "f32" : "bf16"; }

/// Calls `test` for each of these types on every instruction set. (In the bf16 kernel the instruction set applies only
/// to the code around the products.)
inline void on_every_kernel(const std::function<void(ComputeType)>& test) {
  for (const ComputeType compute_type : all_products()) {
    SCOPED_TRACE(name_of(compute_type));
    on_every_target([&] { test(compute_type); });
  }
}

/// Normally distributed numbers that repeat with a prime period, so that no two rows of a matrix are equal.
inline std::vector<float> noise(std::size_t n, unsigned seed) {
  static const std::vector<float> numbers = [] {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> out(65521);
    for (float& x : out) x = normal(random);
    return out;
  }();
  std::vector<float> out(n);
  std::size_t at = std::size_t{7919} * seed % numbers.size();
  for (float& x : out) {
    x = numbers[at];
    at = at + 1 == numbers.size() ? 0 : at + 1;
  }
  return out;
}

inline Shape shape_of(int kv_heads, int group, int d) {
  return {kv_heads * group, kv_heads, d, 1.0F / std::sqrt(static_cast<float>(d))};
}

/// A soft cap, and a logit near which the sinks of all heads are.
struct Caps {
  float cap = 0;
  float sink = 0;
  bool operator==(const Caps&) const = default;
};
constexpr float kNoSinks = 12345;
/// The tests' logits have a standard deviation of 1: the caps bend them much, little or not at all; the sinks take some
/// attention, nearly all or none.
constexpr Caps kCaps[] = {{1.5F, kNoSinks}, {50, kNoSinks}, {0, 3}, {0, 40}, {0, -150}, {1.5F, 3}};

/// Sets the cap and the sinks; returns the sinks, which the shape refers to.
inline std::vector<float> set_caps(const Caps& caps, Shape& shape) {
  shape.cap = caps.cap;
  std::vector<float> sinks;
  for (int head = 0; caps.sink != kNoSinks && head < shape.query_heads; ++head)
    sinks.push_back(caps.sink + 0.5F * static_cast<float>(head % 5));
  shape.sink_logits = sinks;
  return sinks;
}

/// How a query head turns products with keys into logits.
inline reference::Logits logits_of(const Shape& shape, int head) {
  reference::Logits out{static_cast<double>(shape.scale), static_cast<double>(shape.cap)};
  if (!shape.sink_logits.empty()) out.sink = static_cast<double>(shape.sink_logits[z(head)]);
  return out;
}

/// Rows [begin, end) of `rows` as f32 [end - begin][d].
inline std::vector<float> decoded(const cache::Rows& rows, int begin, int end) {
  std::vector<float> out(z(end - begin) * z(rows.dim));
  const std::size_t d = z(rows.dim);
  for (int i = begin; i < end; ++i)
    cache::decode_row(rows.type, rows.row(i), std::span(out).subspan(z(i - begin) * d, d));
  return out;
}

/// |got - want| <= error, element by element; NaN fails.
inline void expect_close(std::span<const float> got, std::span<const double> want, std::span<const double> error,
                         const std::string& where) {
  ASSERT_EQ(got.size(), want.size()) << where;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(static_cast<double>(got[i]) - want[i]);
    ASSERT_TRUE(difference <= error[i]) << where << ", element " << i << ": " << got[i] << " instead of " << want[i]
                                        << " ± " << error[i];
  }
}

/// A prompt of n tokens in one layer: random queries, and keys and values in a scratch.
struct Prompt {
  Prompt(const Shape& s, int tokens, ElementType type, unsigned seed = 1)
      : shape(s),
        n(tokens),
        scratch(account, type, s.kv_heads, s.head_dim, tokens),
        q(noise(z(tokens) * z(s.query_heads * s.head_dim), seed)) {
    const std::size_t row = z(s.kv_heads * s.head_dim);
    fill(noise(z(tokens) * row, seed + 1), noise(z(tokens) * row, seed + 2));
  }

  /// keys and values [n][H_kv][d]
  void fill(std::vector<float> new_keys, std::vector<float> new_values) {
    keys = std::move(new_keys);
    values = std::move(new_values);
    const std::size_t row = z(shape.kv_heads * shape.head_dim);
    decoded_.clear();
    scratch.truncate(0);
    scratch.extend(std::vector<std::int32_t>(z(n)));
    for (int i = 0; i < n; ++i) scratch.store(i, keys.data() + z(i) * row, values.data() + z(i) * row);
  }

  std::span<const float> query(int token, int head) const {
    return std::span(q).subspan((z(token) * z(shape.query_heads) + z(head)) * z(shape.head_dim), z(shape.head_dim));
  }

  int first_seen(int token) const { return shape.window == 0 ? 0 : std::max(0, token + 1 - shape.window); }

  reference::Result expected(int token, int head) const {
    const std::size_t d = z(shape.head_dim);
    const auto& seen = rows_of(head / shape.group());
    const std::size_t first = z(first_seen(token)) * d;
    const std::size_t count = z(token + 1) * d - first;
    return reference::attend(query(token, head), std::span(seen.keys).subspan(first, count),
                             std::span(seen.values).subspan(first, count), logits_of(shape, head), rounding());
  }

  reference::Rounding rounding() const {
    if (compute_type == ComputeType::f32) return {};
    return {factors_are_rounded ? 0 : reference::kRoundoffBf16, reference::kRoundoffBf16, reference::kExponentialBf16};
  }

  /// Rounds queries, keys, values and the scale to numbers that bf16 holds exactly. REQUIRES: a scratch of bf16.
  void round_factors() {
    for (float& x : q) x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000U);
    // Queries are multiplied by the scale and by log2(e); the product is made a power of 2.
    shape.scale = std::numbers::ln2_v<float> * std::exp2(std::round(std::log2(shape.scale)));
    factors_are_rounded = true;
  }

  /// Output [n - first][H_q][d] of tokens [first, n), `chunk` at a time. `row_scales` [n] or empty.
  std::vector<float> prefill(int first, int chunk, int threads, std::span<ColumnStatistics* const> columns = {},
                             KeyRange recorded = {}, std::span<const float> row_scales = {}) {
    const std::size_t row = z(shape.query_heads * shape.head_dim);
    std::vector<float> out(z(n - first) * row, std::nanf(""));
    cpu::Prefill attention(account, threads, compute_type);
    for (int at = first; at < n; at += chunk) {
      attention.begin({shape, q.data() + z(at) * row, out.data() + z(at - first) * row, at, std::min(chunk, n - at),
                       columns, recorded, row_scales.empty() ? nullptr : row_scales.data() + at},
                      scratch);
      on_team(threads, [&](Worker w) { attention.run(w); });
      on_team(threads, [&](Worker w) { attention.reduce(w); });
    }
    return out;
  }

  Shape shape;
  int n;
  MemoryAccount account;
  cache::LayerScratch scratch;
  std::vector<float> q;            ///< [n][H_q][d]
  std::vector<float> keys = {};    ///< [n][H_kv][d] before they were encoded
  std::vector<float> values = {};  ///< likewise
  ComputeType compute_type = ComputeType::f32;
  bool factors_are_rounded = false;

 private:
  /// All stored rows of a KV head as f32.
  struct DecodedRows {
    std::vector<float> keys;
    std::vector<float> values;
  };
  const DecodedRows& rows_of(int kv_head) const {
    auto& rows = decoded_[kv_head];
    if (rows.keys.empty()) rows = {decoded(scratch.keys(kv_head), 0, n), decoded(scratch.values(kv_head), 0, n)};
    return rows;
  }
  mutable std::map<int, DecodedRows> decoded_;
};

/// The tokens of a prompt from `first` on as a prompt of its own. Of the tokens before, each KV head keeps the last
/// entries.
struct Later {
  Later(Prompt& all, int first_token, std::vector<int> entries)
      : prompt(all),
        first(first_token),
        kept(std::move(entries)),
        past(all.account, all.scratch.type()),
        scratch(all.account, all.scratch.type(), all.shape.kv_heads, all.shape.head_dim, all.n - first_token) {
    past.begin_layer(all.shape.head_dim, kept);
    for (int head = 0; head < all.shape.kv_heads; ++head) {
      const int begin = first - kept[z(head)];
      past.add(
          head,
          {all.scratch.keys(head).slice(begin, kept[z(head)]), all.scratch.values(head).slice(begin, kept[z(head)])},
          Rope());
    }
    scratch.extend(std::vector<std::int32_t>(z(n())));
    std::vector<std::byte> rows(all.scratch.bytes_of_rows(n()));
    all.scratch.copy_rows(first, n(), all.scratch.type(), rows.data());
    scratch.put_rows(0, n(), scratch.type(), rows.data());
  }

  int n() const { return prompt.n - first; }

  /// The result for a token of the whole prompt.
  reference::Result expected(int token, int head) const {
    const int kv = head / prompt.shape.group();
    const int begin = std::max(prompt.first_seen(token), first - kept[z(kv)]);
    return reference::attend(prompt.query(token, head), decoded(prompt.scratch.keys(kv), begin, token + 1),
                             decoded(prompt.scratch.values(kv), begin, token + 1), logits_of(prompt.shape, head),
                             prompt.rounding());
  }

  /// Output [n][H_q][d].
  std::vector<float> prefill(int chunk, int threads, std::span<ColumnStatistics* const> columns = {}) {
    const std::size_t row = z(prompt.shape.query_heads * prompt.shape.head_dim);
    std::vector<float> out(z(n()) * row, std::nanf(""));
    cpu::Prefill attention(prompt.account, threads, prompt.compute_type);
    for (int at = 0; at < n(); at += chunk) {
      attention.begin({prompt.shape,
                       prompt.q.data() + z(first + at) * row,
                       out.data() + z(at) * row,
                       at,
                       std::min(chunk, n() - at),
                       columns,
                       {},
                       nullptr,
                       &past},
                      scratch);
      on_team(threads, [&](Worker w) { attention.run(w); });
      on_team(threads, [&](Worker w) { attention.reduce(w); });
    }
    return out;
  }

  Prompt& prompt;
  int first;
  std::vector<int> kept;  ///< [H_kv]
  cache::PastRows past;
  cache::LayerScratch scratch;
};

}  // namespace winnow::attention
