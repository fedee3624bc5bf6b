#include <gtest/gtest.h>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;

struct Switches {
  bool paper = false;
  bool ra = true;
  bool sgs = true;
  bool vpe = true;
};

double gain(int n, int budget, const Switches& s) {
  if (!s.sgs) return 1;
  if (s.paper) return n <= budget ? 0 : std::sqrt(2 * std::log(double(n) / budget));
  return n <= std::exp(0.5) * budget ? 1 : std::sqrt(2 * std::log(double(n) / budget));
}

/// One KV head, from the prompt's end on.
struct Reference {
  Reference(const FakeLayer& layer, int head, int budget, const Switches& s, int more)
      : group_(layer.group(head, more)), budget_(budget), recent_(std::min(32, budget / 2)), last_(layer.tokens() - 1) {
    const int n = layer.tokens();
    const int rows = s.ra ? std::min(std::max(1, recent_), n) : n;
    std::vector<double> f(z(n));
    for (int i = n - rows; i < n; ++i) {
      for (const auto& a : group_) {
        const double g = gain(i + 1, budget, s);
        double sum = g == 1 ? 1 : 0;  // the fake layer's rows are attention already, though they do not add up to 1
        for (int j = 0; g != 1 && j <= i; ++j) sum += std::pow(a[z(i)][z(j)], g);
        for (int j = 0; j <= i; ++j) f[z(j)] += std::pow(a[z(i)][z(j)], g) / sum / static_cast<double>(group_.size());
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
      for (int j = 0; j < n; ++j) f[z(j)] *= gamma[z(j)] / most;
    }
    accumulated_ = f;
    kept_ = all_of(n);
    if (n <= budget) return;
    const auto order = ranking(pooled({f.begin(), f.end() - recent_}, 7, "mean", "valid"));
    kept_.assign(order.begin(), order.begin() + (budget - recent_));
    for (int j = n - recent_; j < n; ++j) kept_.push_back(j);
    kept_ = sorted(kept_);
  }
  void step(bool by_position, const Switches& s) {
    ++last_;
    kept_.push_back(last_);
    accumulated_.push_back(0);
    const double g = by_position ? gain(last_ + 1, budget_, s) : 1;
    for (const auto& a : group_) {
      double sum = g == 1 ? 1 : 0;
      for (const auto j : kept_) sum += g == 1 ? 0 : std::pow(a[z(last_)][z(j)], g);
      for (const auto j : kept_)
        accumulated_[z(j)] += std::pow(a[z(last_)][z(j)], g) / sum / static_cast<double>(group_.size());
    }
    if (static_cast<int>(kept_.size()) <= budget_) return;
    std::size_t least = kept_.size();
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i] > last_ - recent_) continue;
      if (least == kept_.size() || accumulated_[z(kept_[i])] < accumulated_[z(kept_[least])]) least = i;
    }
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(least));
  }

  std::vector<Matrix> group_;
  int budget_;
  int recent_;
  std::int32_t last_;
  std::vector<double> accumulated_;
  std::vector<std::int32_t> kept_;
};

TEST(AhaKv, keeps_what_the_reference_keeps) {
  const std::vector<std::pair<std::string, Switches>> variants = {{"", {}},
                                                                  {"gain=paper", {true, true, true, true}},
                                                                  {"ra=off", {false, false, true, true}},
                                                                  {"sgs=off", {false, true, false, true}},
                                                                  {"vpe=off", {false, true, true, false}}};
  // No attention that has ties: f32 and double part company there, since sums here are of quotients. Those are below.
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

TEST(AhaKv, keeps_the_latest_of_equals) {
  FakeLayer layer(1, 7, 90, [](int, int, int) { return 0.01; });
  for (const int budget : {1, 9, 40, 89}) {
    const auto kept = layer.plan("ahakv:vpe=off", budget).heads[0];
    EXPECT_EQ(kept.front(), 90 - budget);
    EXPECT_EQ(static_cast<int>(kept.size()), budget);
  }
}

TEST(AhaKv, keeps_what_the_reference_keeps_for_200_steps) {
  for (const char* decode_gain : {"lane", "position"}) {
    for (const int budget : {1, 9, 40, 80, 100}) {
      FakeLayer layer(2, 2, 80, random_attention(11));
      FakeDecode decode(layer, std::string("ahakv:decode-gain=") + decode_gain, budget);
      Reference expected(layer, 1, budget, {}, 200);
      for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(decode.kept(1), expected.kept_) << decode_gain << " budget " << budget << " step " << i;
        decode.step();
        expected.step(std::string(decode_gain) == "position", {});
      }
    }
  }
}

}  // namespace
}  // namespace winnow::test
