// SPDX-License-Identifier: Apache-2.0
// Ada-KV's theorems on the real model's attention (Feng et al., 2024, section 3): adaptive budgets never keep less
// attention than uniform ones, and the lost attention bounds the change of the output.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>

#include "policy/views.h"
#include "winnow/policy/registry.h"
#include "winnow/policy/score.h"
#include "winnow/policy/spread.h"
#include "winnow/session.h"

namespace winnow {
namespace {

std::size_t z(int i) { return static_cast<std::size_t>(i); }

/// Attention of a prompt's last query in one layer, and the values, in double precision.
struct Layer {
  int kv_heads = 0;
  int group = 1;
  std::vector<std::vector<double>> attention;            ///< [H_q][n]
  std::vector<std::vector<std::vector<double>>> values;  ///< [H_kv][n][d]

  std::size_t tokens() const { return attention.front().size(); }
};

Layer seen(const policy::LayerView& view, const attention::ColumnStatistics& attention) {
  Layer out{view.shape.kv_heads, view.shape.group(), {}, {}};
  for (int h = 0; h < view.shape.query_heads; ++h) {
    const auto row = attention.head(h);
    out.attention.emplace_back(row.begin(), row.end());
  }
  std::vector<float> value(z(view.shape.head_dim));
  for (int head = 0; head < view.shape.kv_heads; ++head) {
    const auto rows = view.scratch.values(head);
    auto& to = out.values.emplace_back();
    for (int j = 0; j < rows.count; ++j) {
      cache::decode_row(rows.type, rows.row(j), value);
      to.emplace_back(value.begin(), value.end());
    }
  }
  return out;
}

/// A method that scores entries by the last query's attention, and gives this attention to the test.
policy::Preset watching(std::vector<Layer>& layers) {
  return {.name = "watching", .summary = "", .paper = "", .options = {}, .build = [&layers](const policy::Options&) {
            policy::Method method;
            const auto attention = method.observers.add(policy::observe_last(1), {.ranking = true});
            method.selection.always_kept = {"nothing",
                                            [](const policy::LayerPrompt&, int) { return policy::AlwaysKept{}; }};
            method.selection.least = {"nothing", [](const policy::LayerPrompt&) { return 0; }};
            method.selection.score = {"the last query's attention",
                                      [attention, &layers](const policy::LayerView& view, const policy::AlwaysKept&) {
                                        layers.push_back(seen(view, view[attention]));
                                        return policy::reduce_group(view[attention], view.shape, policy::Reduce::sum);
                                      }};
            method.schedule = policy::Schedule::once;
            return method;
          }};
}

using Kept = std::vector<std::vector<std::int32_t>>;  ///< [H_kv]

double kept_attention(const Layer& layer, const Kept& kept) {
  double sum = 0;
  for (std::size_t h = 0; h < layer.attention.size(); ++h) {
    for (const auto j : kept[h / z(layer.group)]) sum += layer.attention[h][j];
  }
  return sum;
}

std::vector<double> output(const Layer& layer, std::size_t query_head, std::span<const std::int32_t> kept) {
  const auto& values = layer.values[query_head / z(layer.group)];
  std::vector<double> out(values.front().size());
  double sum = 0;
  for (const auto j : kept) sum += layer.attention[query_head][j];
  for (const auto j : kept) {
    for (std::size_t c = 0; c < out.size(); ++c) out[c] += layer.attention[query_head][j] / sum * values[j][c];
  }
  return out;
}

/// L1 distance of all heads' outputs, concatenated, before the output projection. The theorem holds for any projection,
/// so also for none.
double distance(const Layer& layer, const Kept& kept) {
  std::vector<std::int32_t> all(layer.tokens());
  std::iota(all.begin(), all.end(), 0);
  double sum = 0;
  for (std::size_t h = 0; h < layer.attention.size(); ++h) {
    const auto full = output(layer, h, all);
    const auto part = output(layer, h, kept[h / z(layer.group)]);
    for (std::size_t c = 0; c < full.size(); ++c) sum += std::abs(full[c] - part[c]);
  }
  return sum;
}

/// The largest row norm of any head's values.
double largest_value(const Layer& layer) {
  double most = 0;
  for (const auto& head : layer.values) {
    for (const auto& row : head) {
      most = std::max(
          most, std::accumulate(row.begin(), row.end(), 0.0, [](double sum, double x) { return sum + std::abs(x); }));
    }
  }
  return most;
}

double bound(const Layer& layer, const Kept& kept) {
  double whole = 0;  // 1 for each query head, up to rounding
  for (const auto& row : layer.attention) whole += std::accumulate(row.begin(), row.end(), 0.0);
  return 2 * largest_value(layer) * (whole - kept_attention(layer, kept));
}

class AdaTheorems : public testing::Test {
 protected:
  void SetUp() override {
    const char* const path = std::getenv("WINNOW_TEST_MODEL");
    if (path == nullptr) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
    const auto model = Model::load(path);
    std::ifstream file(WINNOW_SOURCE_DIR "/examples/demo/war-and-peace.txt");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    tokens_ = model->vocab().tokenize(text.substr(20, 2500));
    session_.emplace(model, SessionOptions{1, Precision::automatic, 512});
    registry_ = policy::built_in();
    registry_.presets.push_back(watching(layers_));
  }

  /// Kept entries of each layer.
  std::vector<Kept> keep(const std::string& spec, int budget) {
    layers_.clear();
    CacheOptions options;
    options.spec = Spec::parse(spec, registry_);
    options.budget = Budget::parse(std::to_string(budget));
    return session_->prefill(tokens_, std::span(&options, 1)).caches.front().kept();
  }

  std::vector<Layer> layers_;
  policy::Registry registry_;
  std::vector<Token> tokens_;
  std::optional<Session> session_;
};

TEST_F(AdaTheorems, budgets_by_need_keep_no_less_and_bound_the_loss) {
  for (const int budget : {16, 128}) {
    const auto uniform = keep("watching", budget);
    for (const std::string floor : {"0", "0.2"}) {
      const auto by_need = keep("ada(watching):floor=" + floor, budget);
      int unlike = 0;
      for (std::size_t l = 0; l < layers_.size(); ++l) {
        const std::string what =
            "layer " + std::to_string(l) + ", budget " + std::to_string(budget) + ", floor " + floor;
        const Layer& layer = layers_[l];
        // Probabilities are divided by f32 sums over a row, so each has at most n rounding errors.
        const double rounding = static_cast<double>(layer.tokens() * layer.attention.size()) * 0x1p-24;
        EXPECT_GE(kept_attention(layer, by_need[l]), kept_attention(layer, uniform[l]) - rounding) << what;
        EXPECT_LE(bound(layer, by_need[l]), bound(layer, uniform[l]) + 2 * largest_value(layer) * rounding) << what;
        EXPECT_LE(distance(layer, uniform[l]), bound(layer, uniform[l]) + rounding) << what;
        EXPECT_LE(distance(layer, by_need[l]), bound(layer, by_need[l]) + rounding) << what;
        unlike += uniform[l] == by_need[l] ? 0 : 1;
      }
      EXPECT_GT(unlike, 0) << "nothing was compared";
    }
  }
}

}  // namespace
}  // namespace winnow
