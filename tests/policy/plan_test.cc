// What methods keep, against the slow reference.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "base/memory.h"
#include "example_method.h"
#include "policy/method.h"
#include "reference.h"
#include "winnow/error.h"
#include "winnow/spec.h"

namespace winnow {
namespace {

/// One layer with attention of its own making: probabilities are multiples of 2^-20, so that sums of them are exact in
/// f32 and in double, quotients keep their order, and ties are ties in both.
class FakeLayer {
 public:
  FakeLayer(int kv_heads, int group, int n, const std::function<double(int, int, int)>& attention)
      : kv_heads_(kv_heads), group_(group), n_(n), scratch_(account_, ElementType::f32, kv_heads, 8, n) {
    std::vector<std::int32_t> positions(static_cast<std::size_t>(n));
    for (int j = 0; j < n; ++j) positions[static_cast<std::size_t>(j)] = j;
    scratch_.extend(positions);
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> row(static_cast<std::size_t>(kv_heads) * 8);
    for (int j = 0; j < n; ++j) {
      for (float& x : row) x = normal(random);
      scratch_.store(j, row.data(), row.data());
    }
    for (int h = 0; h < kv_heads * group; ++h) {
      reference::Matrix a(static_cast<std::size_t>(n), std::vector<double>(static_cast<std::size_t>(n)));
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j <= i; ++j) a[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = std::floor(attention(h, i, j) * 1048576) / 1048576;
      }
      attention_.push_back(std::move(a));
    }
  }

  cache::KeepPlan plan(const std::string& text, int budget) { return plan(Spec::parse(text), budget); }

  cache::KeepPlan plan(const Spec& spec, int budget) {
    const auto& method = spec.method();
    std::vector<attention::Observation> observations;
    for (const auto& what : method.observe) {
      auto& o = observations.emplace_back(what, kv_heads_ * group_, n_);
      for (int h = 0; h < kv_heads_ * group_; ++h) {
        for (int i = 0; i < n_; ++i) {
          if (!what.rows.contains(i, n_)) continue;
          for (int j = 0; j <= i; ++j) o.head(h)[static_cast<std::size_t>(j)] += static_cast<float>(at(h, i, j));
        }
      }
    }
    const auto budgets = policy::spread_over_layers(method, budget, 2, n_);
    return policy::plan(method, {0, 2, {kv_heads_ * group_, kv_heads_, 8, 1}, &scratch_, observations}, budget, budgets[0]);
  }

  std::vector<reference::Matrix> group(int kv_head) const {
    return {attention_.begin() + kv_head * group_, attention_.begin() + (kv_head + 1) * group_};
  }
  double at(int h, int i, int j) const { return attention_[static_cast<std::size_t>(h)][static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]; }
  const cache::LayerScratch& scratch() const { return scratch_; }

 private:
  int kv_heads_;
  int group_;
  int n_;
  MemoryAccount account_;
  cache::LayerScratch scratch_;
  std::vector<reference::Matrix> attention_;
};

std::vector<std::int32_t> kept(const cache::KeepPlan& plan, int head, int n) {
  if (!plan.keeps_all()) return plan.heads[static_cast<std::size_t>(head)];
  std::vector<std::int32_t> all;
  for (int j = 0; j < n; ++j) all.push_back(j);
  return all;
}

using Attention = std::function<double(int, int, int)>;

Attention random_attention(unsigned seed) {
  return [random = std::mt19937(seed)](int, int, int) mutable { return std::uniform_real_distribution<double>(0, 0.02)(random); };
}

TEST(SnapKv, keeps_what_the_reference_keeps) {
  const std::vector<std::pair<const char*, Attention>> attentions = {
      {"random", random_attention(5)},
      {"constant", [](int, int, int) { return 0.01; }},
      {"few values", [](int h, int i, int j) { return ((h + i + j) % 3) * 0.01; }},
      {"zero", [](int, int, int) { return 0.0; }},
      {"spikes", [](int h, int, int j) { return j % (17 + h) == 0 ? 0.5 : 0.0; }},
  };
  const std::vector<std::pair<int, int>> heads = {{1, 1}, {2, 3}, {1, 7}};
  for (const auto& [name, attention] : attentions) {
    for (const auto& [kv_heads, group] : heads) {
      constexpr int kTokens = 90;
      FakeLayer layer(kv_heads, group, kTokens, attention);
      for (const int budget : {9, 10, 33, 60, 89, 90, 91}) {
        for (const auto& [pool, pad, gqa, kernel] : {std::tuple{"max", "valid", "mean", 7}, {"mean", "valid", "max", 5}, {"mean", "count", "sum", 3}, {"max", "valid", "sum", 1}}) {
          const auto spec = std::string("snapkv:window=8,kernel=") + std::to_string(kernel) + ",pool=" + pool + ",pad=" + pad + ",gqa=" + gqa;
          const auto plan = layer.plan(spec, budget);
          for (int head = 0; head < kv_heads; ++head) {
            EXPECT_EQ(kept(plan, head, kTokens), reference::snapkv(layer.group(head), budget, 8, kernel, pool, pad, gqa))
                << name << " " << spec << " budget " << budget << " head " << head;
          }
        }
      }
    }
  }
}

TEST(SnapKv, permuting_heads_permutes_the_result) {
  const auto table = [](int h, int i, int j) { return std::fmod(0.137 * (h + 1) * (i + 3) * (j + 7), 0.02); };
  FakeLayer straight(3, 2, 70, table);
  FakeLayer swapped(3, 2, 70, [&](int h, int i, int j) { return table((h + 2) % 6, i, j); });
  const auto a = straight.plan("snapkv:window=8", 30);
  const auto b = swapped.plan("snapkv:window=8", 30);
  for (std::size_t head = 0; head < 3; ++head) EXPECT_EQ(b.heads[head], a.heads[(head + 1) % 3]);
}

TEST(StreamingLlm, keeps_what_the_reference_keeps) {
  FakeLayer layer(2, 1, 50, random_attention(1));
  for (const int budget : {5, 6, 20, 49, 50, 51}) {
    EXPECT_EQ(kept(layer.plan("streaming-llm", budget), 1, 50), reference::streaming(50, budget, 4)) << budget;
    if (budget <= 12) continue;
    EXPECT_EQ(kept(layer.plan("streaming-llm:sinks=12", budget), 0, 50), reference::streaming(50, budget, 12)) << budget;
  }
}

TEST(Plan, full_keeps_everything) { EXPECT_TRUE(FakeLayer(1, 1, 20, random_attention(1)).plan("full", 1).keeps_all()); }

TEST(Plan, refuses_what_is_forced_already) {
  FakeLayer layer(1, 1, 90, random_attention(1));
  for (const auto& [spec, budget] : {std::pair{"snapkv", 32}, {"streaming-llm", 4}, {"streaming-llm:sinks=100", 50}}) {
    try {
      layer.plan(spec, budget);
      ADD_FAILURE() << spec;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(budget)), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("at least"), std::string::npos) << error.what();
    }
  }
}

TEST(Plan, a_method_is_added_by_a_file_and_a_line) {
  policy::Registry registry = policy::built_in();
  registry.presets.push_back(policy::methods::value_norm());
  FakeLayer layer(2, 1, 40, random_attention(1));
  const auto plan = layer.plan(Spec::parse("value-norm:recent=2", registry), 10);
  for (int head = 0; head < 2; ++head) {
    std::vector<std::pair<double, int>> lengths;
    for (int j = 0; j < 38; ++j) {
      std::vector<float> v(8);
      cache::decode_row(ElementType::f32, layer.scratch().values(head).row(j), v);
      double sum = 0;
      for (const float x : v) sum += static_cast<double>(x) * x;
      lengths.emplace_back(-sum, j);
    }
    std::sort(lengths.begin(), lengths.end());
    std::vector<std::int32_t> expected = {38, 39};
    for (std::size_t i = 0; i < 8; ++i) expected.push_back(lengths[i].second);
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(plan.heads[static_cast<std::size_t>(head)], expected);
  }
}

}  // namespace
}  // namespace winnow
