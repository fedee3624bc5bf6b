// SPDX-License-Identifier: Apache-2.0
// Attention within tiles, compared with double precision.
#include "attention/tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace winnow::attention {
namespace {

constexpr int kDim = 12;
constexpr int kQueryHeads = 6;
constexpr int kKvHeads = 2;

std::size_t z(int i) { return static_cast<std::size_t>(i); }

/// A prompt's keys in a scratch, and its queries [n][H_q][d].
struct Prompt {
  explicit Prompt(int tokens) : n(tokens), scratch(account, ElementType::f32, kKvHeads, kDim, tokens) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& x) {
      for (float& v : x) v = 1.5F * normal(random);
    };
    queries.resize(z(n * kQueryHeads * kDim));
    fill(queries);
    std::vector<std::int32_t> positions;
    for (int i = 0; i < n; ++i) positions.push_back(i);
    scratch.extend(positions);
    for (int i = 0; i < n; ++i) {
      auto& key = keys.emplace_back(z(kKvHeads * kDim));
      fill(key);
      scratch.store(i, key.data(), key.data());
    }
  }

  double logit(int head, int i, int j) const {
    double sum = 0;
    for (int c = 0; c < kDim; ++c)
      sum += static_cast<double>(queries[z((i * kQueryHeads + head) * kDim + c)]) *
             keys[z(j)][z(head / (kQueryHeads / kKvHeads) * kDim + c)];
    return sum;
  }

  int n;
  MemoryAccount account;
  cache::LayerScratch scratch;
  std::vector<float> queries;
  std::vector<std::vector<float>> keys;
};

/// Statistics [H_q][n] of a prompt read in chunks of `chunk` rows by `team` threads.
ColumnStatistics measured(const Prompt& prompt, const Tiles& tiles, int chunk, int team) {
  ColumnStatistics out({}, kQueryHeads, prompt.n);
  TileAttention attention(out, tiles, kDim);
  for (int first = 0; first < prompt.n; first += chunk) {
    const int rows = std::min(chunk, prompt.n - first);
    for (int i = 0; i < team; ++i)
      attention.add(prompt.queries.data() + first * kQueryHeads * kDim, prompt.scratch, first, rows, {i, team});
  }
  return out;
}

/// The token's sum over all queries of its tile. If `rest` asks for it, a short tile is padded with queries and keys of
/// zeros.
double expected(const Prompt& prompt, const Tiles& tiles, int head, int token) {
  const int end = prompt.n - tiles.after;
  if (token < tiles.before || token >= end) return 0;
  const int begin = tiles.before + (token - tiles.before) / tiles.length * tiles.length;
  const int whole = begin + tiles.length;
  double out = 0;
  for (int i = begin; i < whole; ++i) {
    if (i >= end && tiles.rest == Tiles::Rest::nothing) continue;
    double sum = 0;
    for (int j = begin; j < whole; ++j) {
      if (j >= end && tiles.rest == Tiles::Rest::nothing) continue;
      sum += std::exp(i < end && j < end ? prompt.logit(head, i, j) : 0);
    }
    out += std::exp(i < end ? prompt.logit(head, i, token) : 0) / sum;
  }
  return out;
}

TEST(TileAttention, every_token_sees_all_of_its_tile_and_nothing_else) {
  const Prompt prompt(151);
  for (const auto rest : {Tiles::Rest::nothing, Tiles::Rest::zeros}) {
    for (const auto& tiles : {Tiles{32, 8, 4, rest}, Tiles{32, 0, 0, rest}, Tiles{200, 5, 1, rest},
                              Tiles{1, 0, 0, rest}, Tiles{139, 8, 4, rest}, Tiles{70, 150, 1, rest}}) {
      const auto got = measured(prompt, tiles, 151, 1);
      for (int head = 0; head < kQueryHeads; ++head) {
        for (int j = 0; j < prompt.n; ++j) {
          const double want = expected(prompt, tiles, head, j);
          ASSERT_NEAR(got.head(head)[j], want, 1e-5 * (1 + want)) << tiles.length << " " << head << " " << j;
        }
      }
    }
  }
}

TEST(TileAttention, neither_chunks_nor_threads_change_a_bit) {
  const Prompt prompt(151);
  for (const auto& tiles : {Tiles{32, 8, 4}, Tiles{200, 5, 1}, Tiles{7, 3, 9, Tiles::Rest::zeros}}) {
    const auto whole = measured(prompt, tiles, 151, 1);
    for (const int chunk : {1, 10, 64, 150}) {
      for (const int team : {1, 4}) {
        const auto parts = measured(prompt, tiles, chunk, team);
        for (int head = 0; head < kQueryHeads; ++head) {
          const auto a = whole.head(head);
          const auto b = parts.head(head);
          ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << tiles.length << " " << chunk << " " << team;
        }
      }
    }
  }
}

Shape test_shape() { return {.query_heads = kQueryHeads, .kv_heads = kKvHeads, .head_dim = kDim}; }

/// Adds rows [first, n) in chunks.
void add_rows(TileAttention& attention, const Prompt& prompt, int first, int n, int chunk) {
  for (int at = first; at < n; at += chunk)
    attention.add(prompt.queries.data() + at * kQueryHeads * kDim, prompt.scratch, at, std::min(chunk, n - at), {0, 1});
}

/// The state after `rows` rows, kept while a prompt of n rows passes.
std::vector<std::byte> state_of(const Prompt& prompt, const Tiles& tiles, int rows, int n) {
  std::vector<std::byte> out(TileAttention::state_bytes(test_shape(), tiles, rows));
  ColumnStatistics sums({}, kQueryHeads, n);
  TileAttention attention(sums, tiles, kDim);
  attention.keep_state(rows, out);
  add_rows(attention, prompt, 0, n, 48);
  attention.write_sums();
  return out;
}

TEST(TileAttention, continues_from_a_state_with_the_same_bits) {
  const Prompt prompt(400);
  for (const auto& tiles : {Tiles{32, 8, 4}, Tiles{200, 5, 1}, Tiles{7, 3, 9, Tiles::Rest::zeros}, Tiles{64, 0, 0},
                            Tiles{40, 0, 70}, Tiles{50, 100, 2}}) {
    const auto whole = measured(prompt, tiles, 400, 1);
    const auto last = state_of(prompt, tiles, 384, 400);
    for (const int rows : {64, 128, 320}) {
      for (const int n : {rows, rows + 1, rows + 37}) {
        for (const int chunk : {30, 400}) {
          const auto state = state_of(prompt, tiles, rows, n);
          ColumnStatistics sums({}, kQueryHeads, prompt.n);
          TileAttention attention(sums, tiles, kDim);
          attention.take_state(rows, state);
          auto kept = std::vector<std::byte>(last.size());
          attention.keep_state(384, kept);
          add_rows(attention, prompt, rows, prompt.n, chunk);
          attention.write_sums();
          EXPECT_EQ(kept, last) << tiles.length << " " << rows << " " << n << " " << chunk;
          for (int head = 0; head < kQueryHeads; ++head)
            EXPECT_TRUE(std::ranges::equal(sums.head(head), whole.head(head)))
                << tiles.length << " " << rows << " " << n;
        }
      }
    }
  }
}

/// Unscaled logits may be large; the largest is subtracted before the exponential.
TEST(TileAttention, large_logits_are_no_problem) {
  Prompt prompt(40);
  for (float& x : prompt.queries) x *= 60;
  const Tiles tiles{40, 0, 0, Tiles::Rest::nothing};
  const auto got = measured(prompt, tiles, 40, 1);
  for (int head = 0; head < kQueryHeads; ++head) {
    double all = 0;
    for (int j = 0; j < prompt.n; ++j) all += got.head(head)[j];
    EXPECT_NEAR(all, 40, 1e-4);
  }
}

}  // namespace
}  // namespace winnow::attention
