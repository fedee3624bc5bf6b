// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "policy/fake_layer.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;
using Vector = std::vector<double>;

constexpr int kTokens = 90;

struct Settings {
  int rows = 64;
  int recent = 32;
  double lambda = 1e-3;
};

std::string spec_of(const std::string& inner, const Settings& s) {
  return "refit(" + inner + "):rows=" + std::to_string(s.rows) + ",recent=" + std::to_string(s.recent) +
         ",lambda=" + std::to_string(s.lambda);
}

/// A key that can be read. Several keys may share a value.
struct Entry {
  Vector key;
  int value;
};

/// Refitted values of one KV head as in docs/methods.md, for the entries that X keeps and the vectors that it stores.
class Reference {
 public:
  Reference(const FakeLayer& layer, int head, const cache::KeepPlan& plan, const Settings& settings)
      : layer_(layer),
        head_(head),
        s_(settings),
        kept_(static_cast<int>(plan.heads[z(head)].size())),
        queries_(layer.rotated_queries()),
        outputs_(layer.outputs()) {
    for (int j = 0; j < layer.tokens(); ++j) tokens_.push_back(layer.token(j));
    const auto& kept = plan.heads[z(head)];
    for (int i = 0; i < kept_; ++i) {
      const auto& row = tokens_[z(kept[z(i)])];
      entries_[kept[z(i)]] = {part(row, head), i};
      values_.push_back(part(row, layer.shape().kv_heads + head));
      if (!plan.keys.empty() && !plan.keys[z(head)].empty())
        entries_[kept[z(i)]].key = turned(stored(plan.keys, i), kept[z(i)]);
      if (!plan.values.empty() && !plan.values[z(head)].empty()) values_.back() = stored(plan.values, i);
    }
    if (plan.merged_entries.empty()) return;
    for (const auto& joined : plan.merged_entries[z(head)]) {
      auto key = turned(stored(plan.keys, joined.centre), joined.row);
      for (double& x : key) x *= joined.scale;
      entries_[joined.row] = {key, joined.centre};
    }
  }

  /// Solves (X^T X + lambda |X|^2 I) change = X^T (Y - X V - Z), [kept][d]. Z is the part of the output from entries
  /// that a row reads and that are not kept.
  std::vector<Vector> fitted() const {
    std::vector<Vector> x;
    std::vector<Vector> missing;
    const int n = layer_.tokens();
    const int group = layer_.shape().group();
    for (int i = std::max(0, n - s_.rows); i < n; ++i) {
      for (int h = head_ * group; h < (head_ + 1) * group; ++h) add_row(i, h, x, missing);
    }
    double square = 0;
    for (const auto& row : x) {
      for (const double p : row) square += p * p;
    }
    std::vector<Vector> left(z(kept_), Vector(z(kept_)));
    std::vector<Vector> right(z(kept_), Vector(FakeLayer::kDim));
    for (int a = 0; a < kept_; ++a) {
      left[z(a)][z(a)] = s_.lambda * square;
      for (std::size_t r = 0; r < x.size(); ++r) {
        for (int b = 0; b < kept_; ++b) left[z(a)][z(b)] += x[r][z(a)] * x[r][z(b)];
        for (int c = 0; c < FakeLayer::kDim; ++c) right[z(a)][z(c)] += x[r][z(a)] * missing[r][z(c)];
      }
    }
    eliminate(left, right);
    for (int a = 0; a < kept_; ++a) {
      for (int c = 0; c < FakeLayer::kDim; ++c) right[z(a)][z(c)] += values_[z(a)][z(c)];
    }
    return right;
  }

 private:
  Vector part(const std::vector<float>& row, int index) const {
    return {row.begin() + index * FakeLayer::kDim, row.begin() + (index + 1) * FakeLayer::kDim};
  }
  Vector stored(const std::vector<std::vector<float>>& all, int i) const { return part(all[z(head_)], i); }

  static Vector turned(Vector key, int positions) {
    const auto& rope = FakeLayer::rope();
    for (std::size_t i = 0; i < rope.frequency.size(); ++i) {
      const double angle = static_cast<double>(rope.frequency[i]) * positions;
      const double a = key[2 * i];
      const double b = key[2 * i + 1];
      key[2 * i] = a * std::cos(angle) - b * std::sin(angle);
      key[2 * i + 1] = a * std::sin(angle) + b * std::cos(angle);
    }
    return key;
  }

  int place(int i, int query_head) const { return (i * layer_.shape().query_heads + query_head) * FakeLayer::kDim; }

  double weight(int i, int query_head, const Vector& key) const {
    double logit = 0;
    for (int c = 0; c < FakeLayer::kDim; ++c) logit += queries_[z(place(i, query_head) + c)] * key[z(c)];
    return std::exp(layer_.cap > 0 ? layer_.cap * std::tanh(logit / layer_.cap) : logit);
  }

  void add_row(int i, int query_head, std::vector<Vector>& x, std::vector<Vector>& missing) const {
    Vector p(z(kept_));
    Vector beside(FakeLayer::kDim);
    double sum = layer_.sink_logits.empty() ? 0 : std::exp(static_cast<double>(layer_.sink_logits[z(query_head)]));
    for (int j = 0; j <= i; ++j) {
      const auto found = entries_.find(j);
      if (found == entries_.end() && j + s_.recent <= i) continue;
      const auto& row = tokens_[z(j)];
      const double w = weight(i, query_head, found == entries_.end() ? part(row, head_) : found->second.key);
      sum += w;
      const auto value = part(row, layer_.shape().kv_heads + head_);
      if (found != entries_.end()) p[z(found->second.value)] += w;
      for (int c = 0; c < FakeLayer::kDim && found == entries_.end(); ++c) beside[z(c)] += w * value[z(c)];
    }
    if (sum == 0) return;
    const auto full = outputs_.begin() + place(i, query_head);
    Vector rest(full, full + FakeLayer::kDim);
    for (int c = 0; c < FakeLayer::kDim; ++c) {
      rest[z(c)] -= beside[z(c)] / sum;
      for (int a = 0; a < kept_; ++a) rest[z(c)] -= p[z(a)] / sum * values_[z(a)][z(c)];
    }
    for (double& of : p) of /= sum;
    x.push_back(p);
    missing.push_back(rest);
  }

  /// Gaussian elimination; the largest element of each column is the pivot.
  static void eliminate(std::vector<Vector>& left, std::vector<Vector>& right) {
    const std::size_t n = left.size();
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t best = k;
      for (std::size_t i = k; i < n; ++i) best = std::abs(left[i][k]) > std::abs(left[best][k]) ? i : best;
      std::swap(left[k], left[best]);
      std::swap(right[k], right[best]);
      for (std::size_t i = 0; i < n; ++i) {
        if (i == k) continue;
        const double factor = left[i][k] / left[k][k];
        for (std::size_t j = 0; j < n; ++j) left[i][j] -= factor * left[k][j];
        for (std::size_t c = 0; c < right[i].size(); ++c) right[i][c] -= factor * right[k][c];
      }
    }
    for (std::size_t k = 0; k < n; ++k) {
      for (double& x : right[k]) x /= left[k][k];
    }
  }

  const FakeLayer& layer_;
  int head_;
  Settings s_;
  int kept_;
  std::vector<float> queries_;  ///< [n][H_q][d]
  std::vector<double> outputs_;
  std::vector<std::vector<float>> tokens_;
  std::map<int, Entry> entries_;  ///< [row]
  std::vector<Vector> values_;    ///< of kept entries
};

/// f32 probabilities have errors of about 2^-21, and the solution of up to 1 / lambda times that.
void expect_the_reference_s_values(const FakeLayer& layer, const std::string& inner, int budget, const Settings& s) {
  const auto before = layer.plan(inner, budget);
  const auto plan = layer.plan(spec_of(inner, s), budget);
  ASSERT_EQ(plan.heads, before.heads) << inner;
  EXPECT_EQ(plan.keys, before.keys) << inner;
  double changed = 0;
  for (int head = 0; head < layer.shape().kv_heads; ++head) {
    const auto expected = Reference(layer, head, before, s).fitted();
    ASSERT_EQ(plan.values[z(head)].size(), expected.size() * FakeLayer::kDim);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      for (int c = 0; c < FakeLayer::kDim; ++c) {
        const float got = plan.values[z(head)][i * FakeLayer::kDim + z(c)];
        ASSERT_NEAR(got, expected[i][z(c)], 0x1p-21 / s.lambda * 4)
            << spec_of(inner, s) << " budget " << budget << " head " << head << " entry " << i;
        const auto own = layer.token(plan.heads[z(head)][i]);
        changed =
            std::max<double>(changed, std::abs(got - own[z((layer.shape().kv_heads + head) * FakeLayer::kDim + c)]));
      }
    }
  }
  EXPECT_GT(changed, 0.05) << inner;
}

TEST(Refit, stores_the_values_of_the_reference) {
  for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
    const FakeLayer layer(kv_heads, group, kTokens, random_attention(5));
    for (const Settings& s : {Settings{}, Settings{64, 0}, Settings{5, 3, 0.1}, Settings{300, 8, 0.01}}) {
      for (const int budget : {9, 20, 80}) expect_the_reference_s_values(layer, "snapkv:window=8", budget, s);
    }
  }
}

TEST(Refit, goes_around_all_that_evicts) {
  const FakeLayer layer(2, 3, kTokens, random_attention(6));
  for (const char* inner :
       {"ada(snapkv:window=8)", "pyramid(knorm)", "h2o", "tova", "chunk(snapkv:window=8)", "cam",
        "ems:window=8,tau=0.1", "ems:window=8,tau=0.1,positions=merged", "streaming-llm:positions=absolute"})
    expect_the_reference_s_values(layer, inner, 30, {40, 8});
}

TEST(Refit, knows_caps_and_sinks) {
  FakeLayer layer(2, 2, kTokens, random_attention(7));
  layer.cap = 2;
  expect_the_reference_s_values(layer, "knorm", 30, {});
  layer.sink_logits = {0.5F, 3, -1, 2};
  expect_the_reference_s_values(layer, "knorm", 30, {});
}

TEST(Refit, may_be_inside_or_outside_of_what_selects) {
  const FakeLayer layer(2, 3, kTokens, random_attention(8));
  const auto inside = layer.plan("ada(refit(snapkv:window=8):rows=20)", 30);
  const auto outside = layer.plan("refit(ada(snapkv:window=8)):rows=20", 30);
  EXPECT_EQ(inside.heads, outside.heads);
  EXPECT_EQ(inside.values, outside.values);
}

/// An observer with given query rows as its result.
class Recorded : public policy::ObserverOf<attention::QueryRows> {
 public:
  explicit Recorded(const attention::QueryRows& rows) : rows_(rows) {}
  const attention::QueryRows& result() const override { return rows_; }

 private:
  const attention::QueryRows& rows_;
};

/// Refits the entries that knorm keeps of a layer to these rows.
cache::KeepPlan refitted(const FakeLayer& layer, const Spec& spec, const attention::QueryRows& rows) {
  auto plan = layer.plan("knorm", 30);
  const Recorded recorded(rows);
  layer.look(spec.method(), 30, 0, 2, [&](policy::LayerView view) {
    view.results = policy::ObserverResults({&recorded});
    spec.method().lanes.merge.call(view, policy::Scores(1, kTokens), {}, plan);
  });
  return plan;
}

/// No queries are recorded for a turn.
TEST(Refit, leaves_values_alone_without_queries) {
  const FakeLayer layer(1, 2, kTokens, random_attention(9));
  const attention::QueryRows none({attention::QueryRowSet::Kind::listed, 0, {}}, kTokens, 2, FakeLayer::kDim);
  EXPECT_TRUE(refitted(layer, Spec::parse("refit(knorm)"), none).values.empty());
}

TEST(Refit, keeps_values_where_queries_are_no_numbers) {
  const FakeLayer layer(1, 2, kTokens, random_attention(9));
  const auto spec = Spec::parse("refit(knorm):rows=2");
  attention::QueryRows rows({attention::QueryRowSet::Kind::last, 2, {}}, kTokens, 2, FakeLayer::kDim);
  rows.begin_layer();
  const std::vector<float> none(2 * FakeLayer::kDim, std::nanf(""));
  rows.store(kTokens - 1, none.data(), none.data());
  const auto plan = refitted(layer, spec, rows);
  for (std::size_t i = 0; i < plan.heads[0].size(); ++i) {
    const auto own = layer.token(plan.heads[0][i]);
    for (std::size_t c = 0; c < FakeLayer::kDim; ++c)
      EXPECT_EQ(plan.values[0][i * FakeLayer::kDim + c], own[FakeLayer::kDim + c]);
  }
}

std::string message(const std::string& spec) {
  try {
    Spec::parse(spec);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Refit, refuses_with_the_reason_what_does_not_fit) {
  EXPECT_EQ(message("refit(full)"), "refit(full) is not possible: it evicts nothing");
  EXPECT_EQ(message("refit(quest)"), "refit(quest) is not possible: it evicts nothing");
  EXPECT_EQ(message("refit(ada(refit(snapkv)))"),
            "refit(ada(refit(snapkv))) is not possible: its values are already fitted");
  EXPECT_EQ(message("refit(snapkv:positions=cache)"),
            "refit(snapkv) is not possible: positions=cache rotates keys to their ranks, and values are fitted to keys "
            "at their positions in the text");
  EXPECT_NE(message("refit(streaming-llm)"), "");
  EXPECT_NE(message("refit(snapkv):lambda=0"), "");
  EXPECT_NE(message("refit(snapkv):rows=0"), "");
}

}  // namespace
}  // namespace winnow::test
