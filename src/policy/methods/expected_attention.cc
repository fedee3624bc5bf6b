#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "policy/methods/presets.h"
#include "policy/rows.h"

namespace winnow::policy::methods {

namespace {

/// The mean of the rotations to the next `count` positions: pairs are turned and shortened.
class MeanRotation {
 public:
  MeanRotation(const Rope& rope, int first, int count) : rope_(rope) {
    for (const float f : rope.frequency) {
      double c = 0;
      double s = 0;
      for (int t = 0; t < count; ++t) {
        c += std::cos((first + t) * static_cast<double>(f)) / count;
        s += std::sin((first + t) * static_cast<double>(f)) / count;
      }
      cosine_.push_back(c);
      sine_.push_back(s);
    }
  }

  /// Turns a vector whose elements are `step` apart.
  void apply(double* x, std::size_t step) const {
    const std::size_t pairs = cosine_.size();
    for (std::size_t i = 0; i < pairs; ++i) {
      const bool adjacent = rope_.pairing == Rope::Pairing::adjacent;
      double& a = x[(adjacent ? 2 * i : i) * step];
      double& b = x[(adjacent ? 2 * i + 1 : i + pairs) * step];
      const double turned = a * cosine_[i] - b * sine_[i];
      b = a * sine_[i] + b * cosine_[i];
      a = turned;
    }
  }

 private:
  const Rope& rope_;
  std::vector<double> cosine_;
  std::vector<double> sine_;
};

/// Logits that queries to come will give on average, were they normal: scale k·mean + scale^2 k' covariance k / 2.
struct Expected {
  std::vector<float> mean;
  std::vector<float> half_covariance;  ///< of the upper triangle, off-diagonal elements doubled

  Expected(const LayerView& view, int head, const MeanRotation& rotation) {
    const auto dim = static_cast<std::size_t>(view.shape.head_dim);
    const double scale = view.shape.scale;
    auto m = view.moments->mean(head);
    auto c = view.moments->covariance(head);
    rotation.apply(m.data(), 1);
    for (std::size_t i = 0; i < dim; ++i) rotation.apply(c.data() + i * dim, 1);
    for (std::size_t i = 0; i < dim; ++i) rotation.apply(c.data() + i, dim);
    for (const double x : m) mean.push_back(static_cast<float>(x * scale));
    half_covariance.resize(dim * dim);
    for (std::size_t i = 0; i < dim; ++i) {
      for (std::size_t j = i; j < dim; ++j)
        half_covariance[i * dim + j] = static_cast<float>(c[i * dim + j] * scale * scale * (i == j ? 0.5 : 1.0));
    }
  }

  float logit(std::span<const float> key) const {
    const std::size_t dim = key.size();
    float sum = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      const float* const row = half_covariance.data() + i * dim;
      float product = mean[i];
      for (std::size_t j = i; j < dim; ++j) product += row[j] * key[j];
      sum += product * key[i];
    }
    return sum;
  }
};

void soften(std::vector<float>& x) {
  const float most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (float& v : x) sum += v = std::exp(v - most);
  for (float& v : x) v = static_cast<float>(v / sum);
}

Scores expected_attention(const LayerView& view, int future) {
  const MeanRotation rotation(*view.rope, view.tokens(), future);
  Scores scores(view.shape.kv_heads, view.tokens());
  std::vector<float> attention(static_cast<std::size_t>(view.tokens()));
  for (int head = 0; head < scores.heads(); ++head) {
    const auto of_head = scores.head(head);
    for (int g = 0; g < view.shape.group(); ++g) {
      const Expected expected(view, head * view.shape.group() + g, rotation);
      for_each_row(view.scratch->keys(head),
                   [&](int j, std::span<const float> key) { attention[static_cast<std::size_t>(j)] = expected.logit(key); });
      soften(attention);
      for (std::size_t j = 0; j < attention.size(); ++j) of_head[j] += attention[j] / static_cast<float>(view.shape.group());
    }
    for_each_row(view.scratch->values(head),
                 [&](int j, std::span<const float> value) { of_head[static_cast<std::size_t>(j)] *= static_cast<float>(norm(value)); });
  }
  return scores;
}

}  // namespace

/// Expected attention (Devoto et al., 2025, "Expected Attention: KV Cache Compression by Estimating Attention from Future Queries
/// Distribution", section 3): the prompt's queries, as a normal distribution that is turned to the positions to come, say what will be
/// attended to on average; times the value's length.
///   future  positions to come that the rotation is averaged over
///   sinks   first tokens that always stay
Preset expected_attention() {
  return {.name = "expected-attention",
          .summary = "what queries distributed like the prompt's will attend to on average",
          .paper = "Devoto et al. 2025, Expected Attention: KV Cache Compression by Estimating Attention from Future Queries Distribution",
          .options = {{"future", Option::Integer{512, 1, 65536}, "positions to come that the rotation is averaged over"},
                      {"sinks", Option::Integer{4, 0, 65536}, "first tokens that always stay"}},
          .build = [](const Options& options) {
            const int future = options.integer("future");
            Method method = ranked_by("expected attention times the value's length", options.integer("sinks"),
                                      [future](const LayerView& view, const Forced&) { return expected_attention(view, future); });
            constexpr int kUnlikeTheOthers = 4;
            method.query_moments_from = kUnlikeTheOthers;
            return method;
          }};
}

}  // namespace winnow::policy::methods
