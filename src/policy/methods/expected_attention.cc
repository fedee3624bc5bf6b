// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "attention/products.h"
#include "base/as_size.h"
#include "policy/mean_rotation.h"
#include "policy/methods/presets.h"
#include "policy/observers/query_moments.h"
#include "policy/rows.h"

namespace winnow::policy::methods {

namespace {

/// Logarithm of the mean of exp(logit) over normally distributed future queries: scale k·mean + scale^2 k' covariance k
/// / 2. A soft cap of logits is applied to this one.
class Expected {
 public:
  Expected(const LayerView& view, const attention::QueryMoments& moments, int head, const MeanRotation& rotation)
      : shape_(view.shape),
        dim_(as_size(view.shape.head_dim)),
        mean_(scaled_mean(view, moments, head, rotation)),
        half_covariance_(scaled_half_covariance(view, moments, head, rotation), view.shape.head_dim) {}

  /// Expected logits of contiguous keys [n][d].
  void logits(std::span<const float> keys, std::span<float> out) {
    const auto stride = as_size(half_covariance_.stride());
    products_.resize(out.size() * stride);
    half_covariance_.multiply(keys, products_);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const float* const key = keys.data() + i * dim_;
      const float* const product = products_.data() + i * stride;
      out[i] = 0;
      for (std::size_t c = 0; c < dim_; ++c) out[i] += key[c] * (mean_[c] + product[c]);
      out[i] = shape_.capped(out[i]);
    }
  }

 private:
  static std::vector<float> scaled_mean(const LayerView& view, const attention::QueryMoments& moments, int head,
                                        const MeanRotation& rotation) {
    auto m = moments.mean(head);
    rotation.apply(m.data(), 1);
    std::vector<float> out;
    for (const double x : m) out.push_back(static_cast<float>(x * view.shape.scale));
    return out;
  }
  static std::vector<float> scaled_half_covariance(const LayerView& view, const attention::QueryMoments& moments,
                                                   int head, const MeanRotation& rotation) {
    const auto dim = as_size(view.shape.head_dim);
    auto c = moments.covariance(head);
    for (std::size_t i = 0; i < dim; ++i) rotation.apply(c.data() + i * dim, 1);
    for (std::size_t i = 0; i < dim; ++i) rotation.apply(c.data() + i, dim);
    const double scale = view.shape.scale;
    std::vector<float> out;
    for (const double x : c) out.push_back(static_cast<float>(x * scale * scale / 2));
    return out;
  }

  attention::Shape shape_;
  std::size_t dim_;
  std::vector<float> mean_;                ///< [d]
  attention::PackedRows half_covariance_;  ///< [d][d]
  std::vector<float> products_;
};

/// Softmax in place; `others` are further logits of its denominator.
void soften(std::vector<float>& x, std::span<const float> others) {
  float most = *std::max_element(x.begin(), x.end());
  for (const float v : others) most = std::max(most, v);
  double sum = 0;
  for (const float v : others) sum += std::exp(v - most);
  for (float& v : x) {
    v = std::exp(v - most);
    sum += v;
  }
  for (float& v : x) v = static_cast<float>(v / sum);
}

/// Adds the expected attention of a group's future queries, averaged over its query heads, to the entries from `first`
/// on, [n - first].
void add_attention(const LayerView& view, const attention::QueryMoments& moments, int head,
                   const MeanRotation& rotation, int first, std::span<float> out) {
  constexpr int kTogether = 64;
  const auto& keys = view.scratch.keys(head);
  const auto dim = as_size(view.shape.head_dim);
  std::vector<Expected> group;
  for (int g = 0; g < view.shape.group(); ++g)
    group.emplace_back(view, moments, head * view.shape.group() + g, rotation);
  std::vector<std::vector<float>> attention(group.size(), std::vector<float>(out.size()));
  std::vector<float> rows(kTogether * dim);
  for (int next = first; next < keys.count; next += kTogether) {
    const auto count = as_size(std::min(kTogether, keys.count - next));
    for (std::size_t i = 0; i < count; ++i) {
      cache::decode_row(keys.type, keys.row(next + static_cast<int>(i)), std::span(rows).subspan(i * dim, dim));
    }
    for (std::size_t g = 0; g < group.size(); ++g) {
      group[g].logits(std::span(rows).first(count * dim), std::span(attention[g]).subspan(next - first, count));
    }
  }
  for (std::size_t g = 0; g < group.size(); ++g) {
    soften(attention[g], view.shape.sink_of(head * view.shape.group() + static_cast<int>(g)));
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += attention[g][j] / static_cast<float>(group.size());
  }
}

/// Entries before `first` are left out of the softmax and have a score of 0.
Scores expected_attention(const LayerView& view, const attention::QueryMoments& moments, int future, int first) {
  std::vector<std::int64_t> to_come(as_size(future));
  std::iota(to_come.begin(), to_come.end(), std::int64_t{view.scratch.positions().back()} + 1);
  const MeanRotation rotation(view.rope, to_come);
  Scores scores(view.shape.kv_heads, view.tokens());
  for (int head = 0; head < scores.heads(); ++head) {
    const auto of_head = scores.head(head);
    add_attention(view, moments, head, rotation, first, of_head.subspan(first));
    const auto lengths = view.value_norms(head);
    for (std::size_t j = 0; j < lengths.size(); ++j) of_head[j] *= static_cast<float>(lengths[j]);
  }
  return scores;
}

}  // namespace

/// Expected attention (Devoto et al., 2025, "Expected Attention: KV Cache Compression by Estimating Attention from
/// Future Queries Distribution", section 3): the prompt's queries, as a normal distribution rotated to future
/// positions, predict the mean attention to each entry, which is multiplied by the value's length.
///   future   number of future positions over which the rotation is averaged
///   sinks    first tokens that are always kept and whose queries are ignored, as in the authors' code
///   softmax  evictable: over the evictable entries, as in the authors' code; all: over the sinks, too, so that a
///            query head that is expected to attend to them counts less in its group's mean
Preset expected_attention() {
  return {
      .name = "expected-attention",
      .summary = "keeps the entries that future queries, distributed like the prompt's, will attend to most on average",
      .paper =
          "Devoto et al. 2025, Expected Attention: KV Cache Compression by Estimating Attention from Future Queries "
          "Distribution",
      .options = {{"future", Option::Integer{512, 1, 65536}, "future positions over which the rotation is averaged"},
                  {"sinks", Option::Integer{4, 0, 65536}, "first tokens that are always kept"},
                  {"softmax", Option::Choice{"evictable", {"evictable", "all"}},
                   "entries whose expected attention sums to 1: all but the sinks, or all"}},
      .build = [](const Options& options) {
        const int future = options.integer("future");
        const bool all = options.text("softmax") == "all";
        Method method;
        const auto queries = method.observers.add(observe_moments(options.integer("sinks")), {.ranking = true});
        rank_by(method, "expected attention times the value's length", options.integer("sinks"),
                [queries, future, all](const LayerView& view, const AlwaysKept& always_kept) {
                  return expected_attention(view, view[queries], future, all ? 0 : always_kept.sinks);
                });
        method.selection.turns = true;
        return method;
      }};
}

}  // namespace winnow::policy::methods
