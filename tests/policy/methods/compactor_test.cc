// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numbers>

#include "policy/counter_random.h"
#include "policy/fake_layer.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

constexpr int kDim = FakeLayer::kDim;
using Vector = std::vector<double>;

struct Settings {
  int tile = 256;
  int sinks = 8;
  int recent = 4;
  int sketch = 48;
  int blend = -1;  ///< percent; negative: the share of evicted entries
  bool padded = false;
  std::string pad = "valid";
  double floor = 0;
  int seed = 0;
};

std::string spec_of(const Settings& s) {
  return "compactor:tile=" + std::to_string(s.tile) + ",sinks=" + std::to_string(s.sinks) +
         ",recent=" + std::to_string(s.recent) + ",sketch=" + std::to_string(s.sketch) +
         ",blend=" + (s.blend < 0 ? "evicted" : std::to_string(s.blend)) +
         ",last-tile=" + (s.padded ? "padded" : "short") + ",pad=" + s.pad + ",floor=" + std::to_string(s.floor) +
         ",seed=" + std::to_string(s.seed);
}

Vector key_of(const FakeLayer& layer, int head, int token) {
  const auto row = layer.token(token);
  return {row.begin() + head * kDim, row.begin() + (head + 1) * kDim};
}

/// Undoes RoPE pair by pair.
Vector before_rope(const FakeLayer& layer, int head, int token) {
  Vector key = key_of(layer, head, token);
  const auto& rope = layer.stretched_rope();
  for (std::size_t i = 0; i < rope.frequency.size(); ++i) {
    const double angle = -token * static_cast<double>(rope.frequency[i]);
    const double x = key[2 * i] / rope.magnitude;
    const double y = key[2 * i + 1] / rope.magnitude;
    key[2 * i] = x * std::cos(angle) - y * std::sin(angle);
    key[2 * i + 1] = x * std::sin(angle) + y * std::cos(angle);
  }
  return key;
}

/// Solves m x = b by elimination with pivots.
Vector solved(Matrix m, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c; r < n; ++r) pivot = std::abs(m[r][c]) > std::abs(m[pivot][c]) ? r : pivot;
    std::swap(m[c], m[pivot]);
    std::swap(b[c], b[pivot]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double by = m[r][c] / m[c][c];
      for (std::size_t i = c; i < n; ++i) m[r][i] -= by * m[c][i];
      b[r] -= by * b[c];
    }
  }
  for (std::size_t c = 0; c < n; ++c) b[c] /= m[c][c];
  return b;
}

/// Leverage scores of the evictable tokens.
Vector leverages(const FakeLayer& layer, int head, const Settings& s) {
  std::vector<Vector> directions(z(s.sketch), Vector(kDim));
  for (int i = 0; i < s.sketch * kDim; ++i) {
    const double u = policy::uniform_at(static_cast<std::uint64_t>(s.seed), 0, head, 2 * i);
    const double v = policy::uniform_at(static_cast<std::uint64_t>(s.seed), 0, head, 2 * i + 1);
    directions[z(i / kDim)][z(i % kDim)] =
        std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v) / std::sqrt(s.sketch);
  }
  const int n = layer.tokens() - s.sinks - s.recent;
  std::vector<Vector> keys;
  Vector mean(kDim);
  for (int j = 0; j < n; ++j) {
    keys.push_back(before_rope(layer, head, s.sinks + j));
    for (int c = 0; c < kDim; ++c) mean[c] += keys.back()[c] / n;
  }
  std::vector<Vector> rows;
  for (auto& key : keys) {
    auto& row = rows.emplace_back();
    for (const auto& direction : directions) {
      double x = 0;
      for (int c = 0; c < kDim; ++c) x += (key[c] - mean[c]) * direction[c];
      row.push_back(x);
    }
  }
  Matrix products(z(s.sketch), Vector(z(s.sketch)));
  for (int a = 0; a < s.sketch; ++a) {
    for (int b = 0; b < s.sketch; ++b) {
      for (const auto& row : rows) products[a][b] += row[a] * row[b];
      if (a == b) products[a][b] += 0.01;
    }
  }
  Vector out;
  for (const auto& row : rows) {
    const auto y = solved(products, row);
    double x = 0;
    for (std::size_t c = 0; c < y.size(); ++c) x += row[c] * y[c];
    out.push_back(x);
  }
  return out;
}

/// Attention to each token from all queries of its tile, averaged over the group, times the value's length, pooled.
Vector attentions_to(const FakeLayer& layer, int head, const Settings& s) {
  const int group = layer.shape().group();
  const int heads = layer.shape().query_heads;
  const auto queries = layer.rotated_queries();
  const int end = layer.tokens() - s.recent;
  Vector out;
  for (int first = s.sinks; first < end; first += s.tile) {
    const int last = std::min(end, first + s.tile);
    const int zeros = s.padded ? s.tile - (last - first) : 0;
    Vector sums(z(last - first));
    for (int h = head * group; h < (head + 1) * group; ++h) {
      for (int i = first; i < last; ++i) {
        Vector weights;
        double all = zeros;
        for (int j = first; j < last; ++j) {
          const auto key = key_of(layer, head, j);
          double logit = 0;
          for (int c = 0; c < kDim; ++c) logit += queries[z((i * heads + h) * kDim + c)] * key[c];
          weights.push_back(std::exp(logit));
          all += weights.back();
        }
        for (std::size_t j = 0; j < weights.size(); ++j) sums[j] += weights[j] / all / group;
      }
    }
    for (int j = first; j < last; ++j) {
      const auto row = layer.token(j);
      double square = 0;
      for (int c = 0; c < kDim; ++c) square += std::pow(row[row.size() / 2 + z(head * kDim + c)], 2);
      out.push_back((sums[z(j - first)] + static_cast<double>(zeros) / s.tile) * std::sqrt(square));
    }
  }
  return pooled(out, 3, "mean", s.pad);
}

void standardise(std::vector<Vector>& of_heads) {
  double mean = 0;
  double count = 0;
  for (const auto& head : of_heads) {
    for (const double x : head) mean += x;
    count += static_cast<double>(head.size());
  }
  mean /= count;
  double variance = 0;
  for (const auto& head : of_heads) {
    for (const double x : head) variance += (x - mean) * (x - mean) / (count - 1);
  }
  for (auto& head : of_heads) {
    for (double& x : head) x = (x - mean) / std::sqrt(variance);
  }
}

/// [head][kept token]
std::vector<std::vector<std::int32_t>> compactor(const FakeLayer& layer, int budget, const Settings& s) {
  const int heads = layer.shape().kv_heads;
  std::vector<Vector> outliers;
  std::vector<Vector> attended;
  for (int head = 0; head < heads; ++head) {
    outliers.push_back(leverages(layer, head, s));
    attended.push_back(attentions_to(layer, head, s));
  }
  standardise(outliers);
  standardise(attended);
  const double blend = s.blend < 0 ? 1 - static_cast<double>(budget) / layer.tokens() : s.blend / 100.0;
  std::vector<std::pair<double, std::pair<int, int>>> all;
  std::vector<Vector> score(z(heads));
  for (int head = 0; head < heads; ++head) {
    for (std::size_t j = 0; j < outliers[head].size(); ++j) {
      score[head].push_back(blend * outliers[head][j] + attended[head][j]);
      all.push_back({-score[head][j], {head, static_cast<int>(j)}});
    }
  }
  std::sort(all.begin(), all.end());
  const int mean = budget - s.sinks - s.recent;
  std::vector<int> counts(z(heads), s.floor == 1 ? mean : 0);
  for (int i = 0; s.floor == 0 && i < mean * heads; ++i) ++counts[all[i].second.first];
  std::vector<std::vector<std::int32_t>> out;
  for (int head = 0; head < heads; ++head) {
    auto kept = all_of(s.sinks);
    const auto order = ranking(score[head], s.sinks);
    kept.insert(kept.end(), order.begin(), order.begin() + counts[head]);
    for (int j = layer.tokens() - s.recent; j < layer.tokens(); ++j) kept.push_back(j);
    out.push_back(sorted(kept));
  }
  return out;
}

TEST(Compactor, keeps_what_the_reference_keeps) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
    const FakeLayer layer(kv_heads, group, 131, random_attention(1));
    for (const Settings& s :
         {Settings{}, Settings{32}, Settings{50, 0, 0}, Settings{32, 8, 4, 6, 35}, Settings{32, 8, 4, 48, -1, true},
          Settings{32, 8, 4, 48, -1, true, "count", 1}, Settings{32, 8, 4, 5, -1, false, "valid", 0, 77}}) {
      for (const int budget : {s.sinks + s.recent + 1, 40, 100, 130}) {
        EXPECT_EQ(layer.plan(spec_of(s), budget).heads, compactor(layer, budget, s)) << spec_of(s) << " " << budget;
      }
    }
  }
}

/// YaRN stretches the rotated dimensions, and keys before RoPE must not be stretched.
TEST(Compactor, looks_at_keys_as_they_were_before_rope) {
  const FakeLayer stretched(2, 2, 90, random_attention(1), 0, 3);
  const Settings only_leverage{256, 8, 4, 48, 1000};
  EXPECT_EQ(stretched.plan(spec_of(only_leverage), 40).heads, compactor(stretched, 40, only_leverage));
}

TEST(Compactor, a_seed_gives_the_same_set_again_and_another_one_another) {
  const FakeLayer layer(2, 2, 90, random_attention(1));
  const auto of = [&](const char* spec) { return layer.plan(spec, 30).heads; };
  EXPECT_EQ(of("compactor:sketch=3,blend=1000,seed=4"), of("compactor:sketch=3,blend=1000,seed=4"));
  EXPECT_NE(of("compactor:sketch=3,blend=1000,seed=4"), of("compactor:sketch=3,blend=1000,seed=5"));
}

TEST(Compactor, heads_share_the_budget_and_wrappers_know_it) {
  const auto refusal = [](const char* spec) {
    try {
      Spec::parse(spec);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(refusal("ada(compactor)"), "ada(compactor) is not possible: its heads already share the budget by need");
  EXPECT_EQ(refusal("critical(compactor)"),
            "critical(compactor) is not possible: its scores may be negative, so they cannot be multiplied by lengths");
  EXPECT_NO_THROW(Spec::parse("pyramid(compactor)"));
  EXPECT_NO_THROW(Spec::parse("chunk(compactor)"));
  EXPECT_THROW(Spec::parse("compactor:tile=0"), UsageError);
  EXPECT_THROW(Spec::parse("compactor:blend=all"), UsageError);
}

}  // namespace
}  // namespace winnow::test
