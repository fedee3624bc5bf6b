// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "engine/layers.h"
#include "engine/model_impl.h"
#include "eval/attention/masses.h"
#include "eval/attention/measures.h"
#include "eval/attention/parts.h"
#include "policy/rows.h"
#include "winnow/policy/score.h"

namespace winnow::eval {

namespace {

constexpr double kThresholds[] = {1e-1, 1e-2, 1e-3, 1e-4, 1e-5};
constexpr std::size_t kTold = 1;  // index of the threshold whose share is a value

using Scores = std::vector<double>;

/// AhaKV's step gain of each of the last queries of a prompt: equation 12 for logits divided by sqrt(d), at least 1
/// (docs/methods.md).
std::vector<double> gains(int tokens, int budget) {
  std::vector<double> out;
  for (int i = tokens - std::min(tokens, kLastQueries); i < tokens; ++i)
    out.push_back(std::sqrt(std::max(1.0, 2 * std::log(static_cast<double>(i + 1) / budget))));
  return out;
}

/// AhaKV's prior from a KV head's values: squared norms, averaged with their neighbours, relative to the largest.
Scores prior_of(const HeadAttention& attention, int tokens) {
  std::vector<float> lengths;
  for (int j = 0; j < tokens; ++j) {
    const double length = policy::norm(attention.value(j));
    lengths.push_back(static_cast<float>(length * length));
  }
  policy::pool(lengths, {policy::Pool::mean, 7, policy::Pad::valid});
  const float most = *std::max_element(lengths.begin(), lengths.end());
  Scores out;
  for (const float x : lengths) out.push_back(most > 0 ? static_cast<double>(x / most) : 1);
  return out;
}

double second_half(const Scores& scores) {
  const auto middle = scores.begin() + static_cast<std::ptrdiff_t>((scores.size() + 1) / 2);
  const double all = std::accumulate(scores.begin(), scores.end(), 0.0);
  return all > 0 ? std::accumulate(middle, scores.end(), 0.0) / all : 0;
}

/// For each threshold, the share of entries whose score is at least that part of the largest.
std::vector<double> retained(const Scores& scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  std::vector<double> out;
  for (const double threshold : kThresholds) {
    const auto count = std::count_if(scores.begin(), scores.end(), [&](double x) { return x >= threshold * most; });
    out.push_back(static_cast<double>(count) / static_cast<double>(scores.size()));
  }
  return out;
}

/// Sums over KV heads, by name.
struct ScoreSums {
  std::map<std::string, std::vector<double>> series;
  std::map<std::string, double> halves;
  double heads = 0;

  void add(const std::string& name, const Scores& scores) {
    const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
    auto parts = means_by_part(scores);
    for (double& x : parts) x /= mean > 0 ? mean : 1;
    add_to(series[name], parts);
    halves[name] += second_half(scores);
  }

  static void add_to(std::vector<double>& sums, const std::vector<double>& more) {
    sums.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) sums[i] += more[i];
  }

  Record record() const {
    Record out;
    for (const auto& [name, sums] : series) {
      auto means = sums;
      for (double& x : means) x /= heads;
      if (name.starts_with("retained")) out.values[name] = means[kTold];
      out.series[name] = brief(means);
    }
    for (const auto& [name, sum] : halves) (name == "prior" ? out.score : out.values[name]) = sum / heads;
    return out;
  }
};

/// Attention from the last queries, the mean over a KV head's query heads.
Scores recent(const HeadAttention& attention, const attention::Shape& shape, int kv_head, int tokens,
              std::span<const double> gain) {
  Scores out(as_size(tokens));
  for (int g = 0; g < shape.group(); ++g) {
    const auto masses = last_masses(attention, kv_head * shape.group() + g, tokens, gain);
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += masses[j] / shape.group();
  }
  return out;
}

/// `sums` are by budget.
void add(const LayerAttention& layer, std::map<int, ScoreSums>& sums) {
  const auto& shape = layer.view.shape;
  const int tokens = layer.tokens();
  for (int kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
    const HeadAttention attention(layer, kv_head);
    Scores all(as_size(tokens));
    for (int g = 0; g < shape.group(); ++g) {
      const auto head = layer.sums->head(kv_head * shape.group() + g);
      for (std::size_t j = 0; j < all.size(); ++j) all[j] += static_cast<double>(head[j]);
    }
    const auto plain = recent(attention, shape, kv_head, tokens, {});
    const auto prior = prior_of(attention, tokens);
    for (auto& [budget, sum] : sums) {
      auto scores = recent(attention, shape, kv_head, tokens, gains(tokens, budget));
      sum.add("all", all);
      sum.add("recent", plain);
      sum.add("gain", scores);
      ScoreSums::add_to(sum.series["retained"], retained(scores));
      for (std::size_t j = 0; j < scores.size(); ++j) scores[j] *= prior[j];
      sum.add("prior", scores);
      ScoreSums::add_to(sum.series["retained_prior"], retained(scores));
      sum.heads += 1;
    }
  }
}

}  // namespace

Measure scoring() {
  return [](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
            const std::vector<std::vector<float>>&) {
    const auto tokens = tokens_of(tokenized);
    const auto& hparams = engine::hparams_of(session.model());
    std::vector<int> budgets;
    for (const auto& cache : caches)
      budgets.push_back(engine::budget_entries(cache.options(), hparams, static_cast<int>(tokens.size())));
    std::map<int, ScoreSums> sums;
    for (const int budget : budgets) sums[budget];
    observe(session, tokens, [&](const LayerAttention& layer) { add(layer, sums); });
    std::vector<Record> out;
    for (const int budget : budgets) out.push_back(sums[budget].record());
    return out;
  };
}

}  // namespace winnow::eval
