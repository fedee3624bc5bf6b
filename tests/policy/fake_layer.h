// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/worker.h"
#include "policy/observers/layer_observers.h"
#include "policy/observers/output_lengths.h"
#include "policy/plan.h"
#include "policy/reference.h"
#include "policy/sequence_layer.h"
#include "policy/views.h"
#include "winnow/spec.h"

namespace winnow::test {

/// Attention of query head h's query i to key j <= i.
using Attention = std::function<double(int, int, int)>;

inline Attention random_attention(unsigned seed) {
  // The result depends only on the arguments, not on the order of calls.
  return [seed](int h, int i, int j) {
    std::uint64_t x = seed + 1;
    for (const int part : {h, i, j}) x = (x ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15U, x ^= x >> 29;
    return 0.02 * static_cast<double>(x >> 40) / 16777216.0;
  };
}

/// Random attention, and attention with many ties.
inline std::vector<std::pair<const char*, Attention>> attentions() {
  return {{"random", random_attention(5)},
          {"constant", [](int, int, int) { return 0.01; }},
          {"few values", [](int h, int i, int j) { return ((h + i + j) % 3) * 0.01; }},
          {"zero", [](int, int, int) { return 0.0; }},
          {"spikes", [](int h, int, int j) { return j % (17 + h) == 0 ? 0.5 : 0.0; }}};
}

/// One layer of a prompt and of later tokens, with invented attention: probabilities are multiples of 2^-20, so their
/// sums are exact in f32 and in double, quotients keep their order, and ties are ties in both.
class FakeLayer {
 public:
  static constexpr int kDim = 8;

  /// With `words` > 0 there are only `words` different tokens, in turns; equal tokens have equal keys before RoPE and
  /// equal values. RoPE multiplies the dimensions that it rotates by `magnitude`.
  FakeLayer(int kv_heads, int group, int n, Attention attention, int words = 0, float magnitude = 1)
      : classes(n),
        kv_heads_(kv_heads),
        group_(group),
        n_(n),
        words_(words),
        stretched_{rope().pairing, rope().frequency, magnitude},
        attention_(std::move(attention)),
        scratch_(account_, ElementType::f32, kv_heads, kDim, n) {
    std::vector<std::int32_t> positions(n);
    for (int j = 0; j < n; ++j) positions[j] = j;
    scratch_.extend(positions);
    for (int j = 0; j < n; ++j) {
      const auto row = token(j);
      scratch_.store(j, row.data(), row.data() + row.size() / 2);
    }
    for (int i = 0; i < kv_heads * group * kDim; ++i) {
      statistics.mean.push_back(std::sin(static_cast<float>(3 * i)));
      if (i % 2 == 0) statistics.mean_lengths.push_back(1.5F + 0.5F * std::cos(static_cast<float>(i)));
    }
  }

  /// Keys of all heads, then values, of one token.
  std::vector<float> token(int position) const {
    std::mt19937 random(static_cast<unsigned>(words_ > 0 ? position % words_ : position) + 100);
    std::normal_distribution<float> normal;
    std::vector<float> row(2 * static_cast<std::size_t>(kv_heads_) * kDim);
    for (float& x : row) x = normal(random);
    for (int head = 0; words_ > 0 && head < kv_heads_; ++head) rope().shift(row.data() + head * kDim, position);
    for (int i = 0; i < kv_heads_ * kDim; ++i) {
      if (i % kDim < rope().rotated_dims()) row[i] *= stretched_.magnitude;
    }
    return row;
  }

  attention::Shape shape() const { return {kv_heads_ * group_, kv_heads_, kDim, 1, 0, cap, sink_logits}; }
  float cap = 0;                    ///< soft cap of logits; ignored by the invented attention
  std::vector<float> sink_logits;   ///< [H_q] or empty; if set, sinks get the rest of each attention row to 1
  std::vector<TokenClass> classes;  ///< [n]
  int question = 0;                 ///< length of the question, the prompt's last tokens
  /// Scores predicted by the calibration; all different by default.
  std::function<float(int kv_head, int token)> predicted = [](int kv_head, int token) {
    return std::sin(static_cast<float>(kv_head + 1) * 12.9F + static_cast<float>(token) * 78.2F) - 3;
  };
  reference::QueryStatistics statistics;  ///< of the calibration, different for each head
  policy::LayerCalibration::Facts facts;  ///< further facts of the calibration

  int tokens() const { return n_; }
  policy::LayerPrompt prompt() const { return {n_, group_, kDim, kv_heads_, question}; }
  const cache::LayerScratch& scratch() const { return scratch_; }
  double at(int h, int i, int j) const { return std::floor(attention_(h, i, j) * 1048576) / 1048576; }

  /// Attention of one KV head's query heads, for the prompt and `more` tokens after it.
  std::vector<reference::Matrix> group(int kv_head, int more = 0) const {
    std::vector<reference::Matrix> out;
    const auto rows = static_cast<std::size_t>(n_ + more);
    for (int h = kv_head * group_; h < (kv_head + 1) * group_; ++h) {
      auto& a = out.emplace_back(rows, std::vector<double>(rows));
      for (int i = 0; i < n_ + more; ++i) {
        for (int j = 0; j <= i; ++j) a[i][j] = at(h, i, j);
      }
    }
    return out;
  }

  /// RoPE of some pairs of dimensions, without the magnitude.
  static const Rope& rope() {
    static const Rope rope{Rope::Pairing::adjacent, {1.0F, 0.3F, 0.1F}, 1.0F};
    return rope;
  }
  const Rope& stretched_rope() const { return stretched_; }
  /// Queries of all heads before RoPE, [n][H_q][d], with different means.
  std::vector<float> queries() const {
    std::mt19937 random(77);
    std::normal_distribution<float> normal;
    std::vector<float> out(n_ * kv_heads_ * group_ * kDim);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = normal(random) * 0.5F + 0.3F * static_cast<float>(i % 5);
    return out;
  }
  std::vector<float> rotated_queries() const {
    auto out = queries();
    const int heads = kv_heads_ * group_;
    for (int i = 0; i < n_ * heads; ++i) rope().shift(out.data() + i * kDim, i / heads);
    return out;
  }

  /// Weight of the output projection, from one element of a query head's output to one of kOutputs numbers.
  static constexpr int kOutputs = 11;
  static double output_weight(int query_head, int element, int output) {
    return std::sin(1.7 * query_head + 0.9 * element * element + 2.3 * output);
  }

  /// Length of a token's layer input. Powers of two, so quotients are exact.
  static double input_length(int position) { return std::ldexp(1.0, position % 3); }

  cache::KeepPlan plan(const std::string& text, int budget) const { return plan(Spec::parse(text), budget); }
  cache::KeepPlan plan(const Spec& spec, int budget, int layer = 0, int layers = 2) const {
    const std::vector<policy::LayerPrompt> prompts(layers, prompt());
    const auto budgets = policy::spread_over_layers(spec.method(), budget, prompts);
    cache::KeepPlan out;
    look(spec.method(), budget, layer, layers,
         [&](const policy::LayerView& view) { out = policy::plan(spec.method(), view, budget, budgets[layer]); });
    return out;
  }

  /// Gives a method the results of the observers that it requested.
  void look(const policy::Method& method, int budget, int layer, int layers,
            const std::function<void(const policy::LayerView&)>& at) const {
    const policy::LayerCalibration calibration = this->calibration();
    const policy::ObservedLayer site{.number = layer,
                                     .keys_of = layer,
                                     .readers = 1,
                                     .prompt = prompt(),
                                     .shape = shape(),
                                     .rope = rope(),
                                     .calibration = calibration,
                                     .input_dim = n_};
    const std::array of_method{policy::requests_of(
        method, {.prompt = prompt(), .budget = budget, .first_layer = prompt()}, policy::Reading::whole)};
    const policy::LayerRequests requests(of_method);
    policy::LayerObservers observers(site, requests);
    observers.begin_layer(site);
    show(observers, requests.different());
    observers.end_layer({layer, scratch_, Projection(*this)});
    policy::LayerView view{layer, layers, layer, shape(), scratch_, stretched_, calibration};
    view.classes = classes;
    view.question = question;
    view.budget = budget;
    view.results = observers.results_for(0);
    at(view);
  }

  /// A calibration that maps each token's one-hot input row to its predictions.
  policy::LayerCalibration calibration() const {
    auto out = facts;
    auto& weights = out["predicted scores"];
    for (int head = 0; head < kv_heads_; ++head) {
      for (int j = 0; j < n_; ++j) weights.push_back(predicted(head, j));
    }
    weights.resize(weights.size() + static_cast<std::size_t>(kv_heads_));  // biases
    auto& queries = out["query statistics"] = statistics.mean;
    queries.insert(queries.end(), statistics.mean_lengths.begin(), statistics.mean_lengths.end());
    return policy::LayerCalibration(std::move(out));
  }

  /// Attention outputs of rotated_queries(), by the softmax of their products with the keys, [n][H_q][d].
  std::vector<double> outputs() const {
    std::vector<std::vector<float>> tokens;
    for (int j = 0; j < n_; ++j) tokens.push_back(token(j));
    const auto queries = rotated_queries();
    std::vector<double> out(queries.size());
    const int heads = shape().query_heads;
    for (int row = 0; row < n_ * heads; ++row) {
      const auto h = static_cast<std::size_t>(row % heads);
      const double sink = sink_logits.empty() ? -std::numeric_limits<double>::infinity() : sink_logits[h];
      double sum = std::exp(sink);
      double* const to = out.data() + row * kDim;
      for (int j = 0; j <= row / heads; ++j) {
        const float* const key = tokens[static_cast<std::size_t>(j)].data() + row % heads / group_ * kDim;
        const double logit = std::inner_product(key, key + kDim, queries.data() + row * kDim, 0.0);
        const double weight = std::exp(cap > 0 ? cap * std::tanh(logit / cap) : logit);
        sum += weight;
        for (int c = 0; c < kDim; ++c) to[c] += weight * key[kv_heads_ * kDim + c];
      }
      for (int c = 0; c < kDim; ++c) to[c] /= sum;
    }
    return out;
  }

 private:
  /// Shows all rows in one chunk.
  void show(policy::LayerObservers& observers, std::span<const policy::ObserverRequestPtr> requests) const {
    std::vector<float> inputs(static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_));
    for (int j = 0; j < n_; ++j) inputs[static_cast<std::size_t>(j * n_ + j)] = 1;
    const auto queries = rotated_queries();
    const auto exact = outputs();
    const std::vector<float> rounded(exact.begin(), exact.end());
    std::vector<policy::Observer*> looking;
    observers.add_to(looking, n_);
    for (auto* const observer : looking) {
      if (observer->needs().inputs) observer->see_inputs({0, n_, n_, inputs.data()}, {0, 1});
      if (observer->needs().queries) observer->see_rows({0, n_, queries.data(), rounded.data(), scratch_}, {0, 1});
      for (auto* const columns : observer->columns()) fill(*columns);
    }
    for (const auto& request : requests) {
      if (request->replay() == nullptr || request->replay()->passages.empty()) continue;
      fill(*request->replay(), *observers.of_replay(*request)->columns().front());
    }
  }

  /// The projection given by output_weight().
  class Projection : public policy::OutputProjection {
   public:
    explicit Projection(const FakeLayer& of) : of_(of) {}
    void lengths(int /*layer*/, const cache::LayerScratch& /*scratch*/, policy::OutputLengths& out) const override {
      of_.put_output_lengths(out);
    }

   private:
    const FakeLayer& of_;
  };

  void put_output_lengths(policy::OutputLengths& out) const {
    for (int h = 0; h < shape().query_heads; ++h) {
      for (int j = 0; j < n_; ++j) {
        const auto row = token(j);
        const float* const value = row.data() + (kv_heads_ + h / group_) * kDim;
        double absolute = 0;
        double squares = 0;
        for (int output = 0; output < kOutputs; ++output) {
          double made = 0;
          for (int i = 0; i < kDim; ++i) made += output_weight(h, i, output) * value[i];
          absolute += std::abs(made);
          squares += made * made;
        }
        out.absolute.head(h)[j] = static_cast<float>(absolute);
        out.euclidean.head(h)[j] = static_cast<float>(std::sqrt(squares));
      }
    }
  }

  /// A row of attention; with a power, the softmax of the multiplied logits.
  std::vector<float> raised(const attention::ColumnRequest& what, int h, int i) const {
    std::vector<float> row;
    const double power = what.power.empty() ? 1 : what.power[static_cast<std::size_t>(i - n_) + what.power.size()];
    double rest = 1;
    for (int j = 0; j <= i; ++j) rest -= at(h, i, j);
    double sum = sink_logits.empty() ? 0 : std::pow(std::max(0.0, rest), power);
    for (int j = 0; j <= i; ++j) sum += std::pow(at(h, i, j), power);
    for (int j = 0; j <= i; ++j)
      row.push_back(static_cast<float>(power == 1 ? at(h, i, j) : std::pow(at(h, i, j), power) / sum));
    return row;
  }

  static void add(float x, attention::Reduction reduction, float& to) {
    to = reduction == attention::Reduction::sum ? to + x : std::max(to, x);
  }

  void fill(attention::ColumnStatistics& out) const {
    const auto& what = out.request();
    for (int h = 0; h < kv_heads_ * group_; ++h) {
      for (int i = 0; i < n_; ++i) {
        if (!what.rows.contains(i, n_)) continue;
        const auto row = raised(what, h, i);
        const bool band = what.rows.kind == attention::QueryRowSet::Kind::band;
        for (int j = band ? std::max(0, i - what.rows.count) : 0; j <= i; ++j)
          add(what.weight_of(i, n_) * row[j], what.reduction, out.head(h)[j]);
      }
    }
  }

  /// The rows of a passage attend like the rows that follow the prompt. There are no texts.
  void fill(const policy::Replay& replay, attention::ColumnStatistics& out) const {
    for (int h = 0; h < kv_heads_ * group_; ++h) {
      for (const auto& passage : replay.passages) {
        for (int j = passage.recorded.begin; j < std::min(n_, passage.recorded.end); ++j) {
          float& to = out.head(h)[j];
          for (int i = n_; i < n_ + passage.count + passage.drafted; ++i) {
            const int copied = passage.first + i - n_;
            if (replay.rows == policy::ReplayedRows::copies && j != copied && j != copied + 1) continue;
            const double scale = replay.scale == attention::RowScale::one ? 1 : 1 / input_length(i);
            add(static_cast<float>(scale * at(h, i, j)), replay.reduction, to);
          }
        }
      }
    }
  }

  int kv_heads_;
  int group_;
  int n_;
  int words_;
  Rope stretched_;
  Attention attention_;
  mutable MemoryAccount account_;
  cache::LayerScratch scratch_;
};

inline std::vector<std::int32_t> first_integers(int n) {
  std::vector<std::int32_t> out;
  for (int j = 0; j < n; ++j) out.push_back(j);
  return out;
}

inline std::vector<std::int32_t> kept(const cache::KeepPlan& plan, int head, int n) {
  return plan.keeps_all() ? first_integers(n) : plan.heads[head];
}

/// A layer's lanes while tokens are decoded after the prompt.
class FakeDecode {
 public:
  FakeDecode(const FakeLayer& layer, const std::string& spec, int budget, ElementType type = ElementType::f32)
      : layer_(layer), spec_(Spec::parse(spec)), position_(layer.tokens()), kept_(empty(budget, {type, type})) {
    const auto plan = layer.plan(spec_, budget);
    layer.look(spec_.method(), budget, 0, 2, [&](const policy::LayerView& view) { kept_.commit(plan, view); });
  }

  /// Stores the next token.
  void enter() {
    const auto row = layer_.token(position_);
    kept_.reserve(1);
    for (int head = 0; head < layer_.shape().kv_heads; ++head) {
      const std::size_t at = static_cast<std::size_t>(head) * FakeLayer::kDim;
      const auto key = std::span<const float>(row).subspan(at, FakeLayer::kDim);
      const auto value = std::span<const float>(row).subspan(row.size() / 2 + at, FakeLayer::kDim);
      kept_.enter(head, position_, key, value);
    }
  }

  /// Query of the stored token, [H_q][d].
  std::vector<float> query() const {
    std::mt19937 random(static_cast<unsigned>(position_) + 5000);
    std::normal_distribution<float> normal;
    std::vector<float> out(layer_.shape().query_heads * FakeLayer::kDim);
    for (float& x : out) x = normal(random);
    return out;
  }

  /// Entries that this query reads in a layer.
  std::vector<cache::AttendPlan> plans(int layer) const {
    const auto q = query();
    std::vector<cache::AttendPlan> out(layer_.shape().kv_heads);
    spec_.method().decoding.attend.call(
        {layer, layer_.shape(), lanes(), position_, kept_.terms(), q.data(), 0, layer_.shape().kv_heads}, out);
    return out;
  }

  /// Slots of one head's lane that this query reads in a layer.
  std::vector<std::int32_t> read(int layer, int head) const {
    const auto plan = plans(layer)[head];
    if (plan.empty()) return first_integers(lanes().length(head));
    std::vector<std::int32_t> slots;
    for (const auto& range : plan) {
      for (auto j = range.begin; j < range.end; ++j) slots.push_back(j);
    }
    return slots;
  }

  /// Runs the method's step for all heads at once, or for each head in its own thread.
  enum class Heads : std::uint8_t { together, in_threads };
  void finish_step(Heads heads = Heads::together) {
    const auto shape = layer_.shape();
    int stride = 0;
    for (int head = 0; head < shape.kv_heads; ++head) stride = std::max(stride, lanes().entries(head));
    std::vector<float> probabilities(shape.query_heads * stride);
    for (int h = 0; h < shape.query_heads; ++h) {
      const int head = h / shape.group();
      float* const row = probabilities.data() + h * stride;
      for (int slot = 0; slot < lanes().length(head); ++slot)
        *(row + slot) = probability(h, lanes().position(head, slot));
      for (int i = 0; i < lanes().merged_entries(head).count(); ++i) {
        row[lanes().length(head) + i] = probability(h, lanes().merged_entries(head).positions()[i]);
      }
    }
    const auto calibration = layer_.calibration();
    const auto step = [&](int first, int end) {
      if (!spec_.method().decoding.step) return;
      spec_.method().decoding.step.call({0, shape, kept_.lanes(), position_, kept_.terms(), kept_.limit(), first, end,
                                         probabilities.data(), stride, 0, layer_.stretched_rope(), calibration});
    };
    if (heads == Heads::together || spec_.method().one_set_per_layer) {
      step(0, shape.kv_heads);
    } else {
      std::vector<std::thread> team;
      for (int head = 0; head < shape.kv_heads; ++head) team.emplace_back(step, head, head + 1);
      for (auto& thread : team) thread.join();
    }
    ++position_;
  }

  void step(Heads heads = Heads::together) {
    enter();
    finish_step(heads);
  }

  std::vector<std::int32_t> kept(int head) const {
    std::vector<std::int32_t> out;
    for (int slot = 0; slot < lanes().length(head); ++slot) out.push_back(lanes().position(head, slot));
    std::sort(out.begin(), out.end());
    return out;
  }
  const cache::LayerLanes& lanes() const { return kept_.lanes(); }
  int position() const { return position_; }

 private:
  float probability(int query_head, std::int32_t key) const {
    return static_cast<float>(layer_.at(query_head, position_, key));
  }

  policy::SequenceLayer empty(int budget, const KvType& type) {
    const auto& method = spec_.method();
    const policy::LayerPrompt prompt = layer_.prompt();
    return {account_, method, policy::lane_shape(method, type, layer_.shape(), layer_.stretched_rope()),
            policy::Terms{prompt, budget, method.selection.always_kept.call(prompt, budget)},
            policy::LayerBudget{budget, {}}};
  }

  const FakeLayer& layer_;
  Spec spec_;
  std::int32_t position_;
  MemoryAccount account_;
  policy::SequenceLayer kept_;
};

/// Compares a decode with a slow reference of each KV head, whose `kept_` are the kept entries after each `step()`.
/// Lanes always hold fewer than `longest` entries.
template <class Reference>
void expect_as_references(const FakeLayer& layer, const std::string& spec, int budget, int longest,
                          std::vector<Reference> expected, int steps) {
  SCOPED_TRACE(spec + " @ " + std::to_string(budget));
  FakeDecode own(layer, spec, budget);
  for (int i = 0; i <= steps; ++i) {
    for (int head = 0; head < layer.shape().kv_heads; ++head) {
      ASSERT_EQ(own.kept(head), expected[static_cast<std::size_t>(head)].kept_) << "head " << head << " step " << i;
      ASSERT_LT(own.lanes().length(head), longest);
    }
    own.step();
    for (auto& e : expected) e.step();
  }
}

}  // namespace winnow::test
