// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

struct Switches {
  std::string gain = "floor";
  bool ra = true;
  bool sgs = true;
  bool vpe = true;
};

/// Equation 12 multiplies q·k. Here the power of a softmax of q·k / sqrt(d) is taken, and algorithm 1 multiplies q·k /
/// sqrt(d) by the same number.
double gain(int n, int budget, const Switches& s) {
  if (!s.sgs) return 1;
  const double lambda = n <= budget ? 0 : std::sqrt(2 * std::log(double(n) / budget) / FakeLayer::kDim);
  if (s.gain == "algorithm") return lambda;
  if (s.gain == "paper") return lambda * std::sqrt(FakeLayer::kDim);
  return n <= std::exp(0.5) * budget ? 1 : lambda * std::sqrt(FakeLayer::kDim);
}

/// One KV head after the prompt.
struct Reference {
  Reference(const FakeLayer& layer, int head, int budget, const Switches& s, int more)
      : group_(layer.group(head, more)),
        prompt_(layer.tokens()),
        budget_(budget),
        recent_(std::min(32, budget / 2)),
        last_(layer.tokens() - 1),
        sinks_(!layer.sink_logits.empty()) {
    const int n = layer.tokens();
    const int rows = s.ra ? std::min(std::max(1, recent_), n) : n;
    std::vector<double> f(z(n));
    for (int i = n - rows; i < n; ++i) {
      for (const auto& a : group_) {
        const double g = gain(i + 1, budget, s);
        double sum = g == 1 ? 1 : to_sink(a, i, all_of(i + 1), g);  // the fake layer's rows are already normalised
        for (int j = 0; g != 1 && j <= i; ++j) sum += std::pow(a[i][j], g);
        for (int j = 0; j <= i; ++j) f[j] += std::pow(a[i][j], g) / sum / static_cast<double>(group_.size());
      }
    }
    if (s.vpe) {
      std::vector<double> gamma;
      for (int j = 0; j < n; ++j) {
        const auto row = layer.token(j);
        double norm = 0;
        for (int c = 0; c < FakeLayer::kDim; ++c)
          norm += std::pow(row[row.size() / 2 + z(head * FakeLayer::kDim + c)], 2);
        gamma.push_back(norm);
      }
      gamma = pooled(gamma, 7, "mean", "valid");
      const double most = *std::max_element(gamma.begin(), gamma.end());
      for (int j = 0; j < n; ++j) f[j] *= gamma[j] / most;
    }
    accumulated_ = f;
    kept_ = all_of(n);
    if (n <= budget) return;
    const auto order = ranking(pooled({f.begin(), f.end() - recent_}, 7, "mean", "valid"));
    kept_.assign(order.begin(), order.begin() + (budget - recent_));
    for (int j = n - recent_; j < n; ++j) kept_.push_back(j);
    kept_ = sorted(kept_);
  }
  /// `counted`: the number from which the gain is computed.
  void step(const std::string& counted, const Switches& s) {
    ++last_;
    kept_.push_back(last_);
    accumulated_.push_back(0);
    const double g = counted == "lane" ? 1 : gain(counted == "position" ? last_ + 1 : prompt_, budget_, s);
    for (const auto& a : group_) {
      double sum = g == 1 ? 1 : to_sink(a, last_, kept_, g);
      for (const auto j : kept_) sum += g == 1 ? 0 : std::pow(a[last_][j], g);
      for (const auto j : kept_) accumulated_[j] += std::pow(a[last_][j], g) / sum / static_cast<double>(group_.size());
    }
    if (static_cast<int>(kept_.size()) <= budget_) return;
    std::size_t least = kept_.size();
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i] > last_ - recent_) continue;
      if (least == kept_.size() || accumulated_[kept_[i]] < accumulated_[kept_[least]]) least = i;
    }
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(least));
  }

  /// Attention of a row to its sink, raised to a power.
  double to_sink(const Matrix& a, int i, const std::vector<std::int32_t>& keys, double g) const {
    if (!sinks_) return 0;
    double rest = 1;
    for (const auto j : keys) rest -= a[i][j];
    return std::pow(std::max(0.0, rest), g);
  }

  std::vector<Matrix> group_;
  int prompt_;
  int budget_;
  int recent_;
  std::int32_t last_;
  bool sinks_;
  std::vector<double> accumulated_;
  std::vector<std::int32_t> kept_;
};

TEST(AhaKv, keeps_what_the_reference_keeps) {
  const std::vector<std::pair<std::string, Switches>> variants = {
      {"", {}},
      {"gain=paper", {"paper", true, true, true}},
      {"gain=algorithm", {"algorithm", true, true, true}},
      {"gain=algorithm,ra=off", {"algorithm", false, true, true}},
      {"ra=off", {"floor", false, true, true}},
      {"sgs=off", {"floor", true, false, true}},
      {"vpe=off", {"floor", true, true, false}}};
  // No attention with ties: sums of quotients round differently in f32 and in double, so ties would be broken
  // differently. Tests below have ties.
  const std::vector<std::pair<const char*, Attention>> tables = {
      {"random", random_attention(7)},
      {"another", random_attention(8)},
      {"skewed", [some = random_attention(9)](int h, int i, int j) { return some(h, i, j) / (1 + j % 11); }}};
  for (const auto& [name, attention] : tables) {
    for (const auto& [kv_heads, group] : {std::pair{1, 1}, {2, 3}, {1, 7}}) {
      FakeLayer layer(kv_heads, group, 90, attention);
      for (const auto& [options, switches] : variants) {
        for (const int budget : {1, 2, 9, 20, 40, 70, 89}) {
          const auto plan = layer.plan("ahakv" + (options.empty() ? "" : ":" + options), budget);
          for (int head = 0; head < kv_heads; ++head) {
            EXPECT_EQ(kept(plan, head, 90), Reference(layer, head, budget, switches, 0).kept_)
                << name << " " << options << " budget " << budget;
          }
        }
      }
    }
  }
}

/// Learnt sinks are part of the softmax with a gain, in the prompt and while decoding.
TEST(AhaKv, multiplies_the_logits_of_learnt_sinks_too) {
  bool differs = false;
  for (const Switches& switches : {Switches{"paper", true, true, true}, Switches{"algorithm", true, true, true}}) {
    for (const int budget : {9, 40, 70}) {
      FakeLayer layer(2, 2, 80, random_attention(11));
      Reference without(layer, 1, budget, switches, 60);
      layer.sink_logits = {1, 2, 3, 4};
      FakeDecode decode(layer, "ahakv:decode-gain=position,gain=" + switches.gain, budget);
      Reference expected(layer, 1, budget, switches, 60);
      for (int i = 0; i < 60; ++i) {
        ASSERT_EQ(decode.kept(1), expected.kept_) << switches.gain << " budget " << budget << " step " << i;
        decode.step();
        expected.step("position", switches);
        without.step("position", switches);
        differs |= expected.kept_ != without.kept_;
      }
    }
  }
  EXPECT_TRUE(differs) << "cases in which it makes no difference";
}

TEST(AhaKv, keeps_the_latest_of_equals) {
  FakeLayer layer(1, 7, 90, [](int, int, int) { return 0.01; });
  for (const int budget : {1, 9, 40, 89}) {
    const auto kept = layer.plan("ahakv:vpe=off", budget).heads[0];
    EXPECT_EQ(kept.front(), 90 - budget);
    EXPECT_EQ(static_cast<int>(kept.size()), budget);
  }
}

TEST(AhaKv, keeps_what_the_reference_keeps_for_200_steps) {
  struct Case {
    std::string options;
    std::string counted;
    Switches switches;
  };
  for (const auto& [options, counted, switches] :
       {Case{"decode-gain=auto", "lane", {}}, Case{"decode-gain=lane", "lane", {}},
        Case{"decode-gain=position", "position", {}},
        Case{"decode-gain=prompt,gain=paper", "prompt", {"paper", true, true, true}},
        Case{"decode-gain=position,sgs=off", "position", {"floor", true, false, true}},
        Case{"gain=algorithm", "position", {"algorithm", true, true, true}},
        Case{"gain=algorithm,decode-gain=prompt", "prompt", {"algorithm", true, true, true}},
        Case{"gain=algorithm,decode-gain=lane", "lane", {"algorithm", true, true, true}}}) {
    for (const int budget : {1, 9, 40, 80, 100}) {
      FakeLayer layer(2, 2, 80, random_attention(11));
      FakeDecode decode(layer, "ahakv:" + options, budget);
      Reference expected(layer, 1, budget, switches, 200);
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(decode.kept(1), expected.kept_) << options << " budget " << budget << " step " << i;
        decode.step();
        expected.step(counted, switches);
      }
    }
  }
}

/// With 80 keys and a budget of 40, the gain is sqrt(2 ln 2) = 1.1774, which sharpens the softmax. Algorithm 1 divides
/// it again by the square root of the 8 channels: 0.4163, which flattens the softmax.
TEST(AhaKv, the_gain_sharpens_and_the_literal_algorithms_flattens) {
  const auto sums = [](const std::string& spec) {
    FakeLayer layer(1, 1, 80, [](int, int i, int j) { return i < 79 ? 0 : j == 0 ? 0.36 : j == 1 ? 0.16 : 0.01; });
    std::vector<float> out;
    const Spec parsed = Spec::parse(spec);
    const auto& method = parsed.method();
    layer.look(method, 40, 0, 1, [&](const policy::LayerView& view) {
      const auto seen = view[policy::ResultPlace<attention::ColumnStatistics>{0}].head(0);
      out.assign(seen.begin(), seen.begin() + 2);
    });
    return out[0] / out[1];
  };
  const double plain = 0.36 / 0.16;
  EXPECT_NEAR(sums("ahakv:recent=1,sgs=off"), plain, 1e-4);
  EXPECT_NEAR(sums("ahakv:recent=1"), std::pow(plain, 1.1774), 1e-3);
  EXPECT_NEAR(sums("ahakv:recent=1,gain=algorithm"), std::pow(plain, 0.4163), 1e-3);
}

}  // namespace
}  // namespace winnow::test
