// SPDX-License-Identifier: Apache-2.0
// Measures of a prompt's attention, recomputed in double precision by plain loops from the data that the engine shows
// to a method.
#include <ggml.h>
#include <gguf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "cache/element.h"
#include "documents/calibrate.h"
#include "documents/ingest.h"
#include "engine/model_impl.h"
#include "eval/attention/blocks.h"
#include "eval/attention/masses.h"
#include "eval/attention/measures.h"
#include "eval/attention/output_projection.h"
#include "eval/attention/parts.h"
#include "eval/attention/similarity.h"
#include "eval/group.h"
#include "eval/runner.h"
#include "eval/task_data.h"
#include "policy/observers/columns.h"
#include "policy/views.h"
#include "support/refusal.h"
#include "support/tiny_architectures.h"
#include "winnow/policy/registry.h"

namespace winnow::eval {
namespace {

constexpr double kTolerance = 2e-5;  // of probabilities and cosines: f32 sums in another order

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

TEST(Masses, even_attention_has_its_share_and_one_entry_may_have_all) {
  const Vector even(200, 0.25);
  EXPECT_NEAR(share_in_best(even, 20), 0.1, 1e-12);
  EXPECT_NEAR(share_in_best(even, 200), 1, 1e-12);
  EXPECT_EQ(share_in_best(even, 500), share_in_best(even, 200)) << "no more than all";
  EXPECT_NEAR(fewest_with(even, 0.95), 0.95, 1e-12);
  Vector one(200);
  one[150] = 3;
  EXPECT_EQ(share_in_best(one, 1), 1);
  EXPECT_EQ(fewest_with(one, 0.95), 1.0 / 200);
  const std::vector<std::int32_t> without = {0, 149, 151};
  const std::vector<std::int32_t> with = {150};
  EXPECT_EQ(share_at(one, without), 0);
  EXPECT_EQ(share_at(one, with), 1);
  EXPECT_EQ(share_in_best(Vector(5), 2), 0) << "nothing is a share of nothing";
  EXPECT_NEAR(share_in_best({4, 1, 3, 2}, 2), 0.7, 1e-12);
  EXPECT_EQ(fewest_with({4, 1, 3, 2}, 0.7), 0.5);
}

TEST(Parts, are_equal_and_cover_the_prompt) {
  Vector positions(64);
  std::iota(positions.begin(), positions.end(), 0);
  const auto means = means_by_part(positions);
  ASSERT_EQ(means.size(), 32U);
  for (std::size_t p = 0; p < means.size(); ++p) EXPECT_EQ(means[p], 2 * static_cast<double>(p) + 0.5);
  EXPECT_EQ(part_of(0, 7), 0);
  EXPECT_EQ(part_of(6, 7), 27);
}

std::vector<float> repeated(const std::vector<float>& rows, int times) {
  std::vector<float> out;
  for (int i = 0; i < times; ++i) out.insert(out.end(), rows.begin(), rows.end());
  return out;
}

TEST(Similarity, of_planted_entries) {
  const auto equal = repeated({3, 4}, 10);
  auto s = similarity_of(equal, equal, 2, 0.6);
  EXPECT_NEAR(s.redundant, 0.9, 1e-12) << "all but the first";
  EXPECT_NEAR(s.keys, 1, 1e-6);
  const std::vector<float> across = {1, 0, 0, 2};
  s = similarity_of(across, across, 2, 0.6);
  EXPECT_EQ(s.redundant, 0);
  EXPECT_NEAR(s.values, 0, 1e-6);
  const std::vector<float> opposite = {1, 0, -5, 0};
  s = similarity_of(opposite, opposite, 2, 0.6);
  EXPECT_EQ(s.redundant, 0.5) << "the product of both cosines counts, as in the paper";
  EXPECT_EQ(similarity_of(opposite, std::vector<float>{1, 0, 1, 0}, 2, 0.6).redundant, 0);
  const std::vector<float> nothing(8);
  EXPECT_EQ(similarity_of(nothing, nothing, 2, 0.6).redundant, 0) << "what has no length is like nothing";
}

double cosine(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) /
         std::sqrt(std::inner_product(a.begin(), a.end(), a.begin(), 0.0) *
                   std::inner_product(b.begin(), b.end(), b.begin(), 0.0));
}

Similarity slow_similarity(const Matrix& keys, const Matrix& values, double threshold) {
  Similarity out;
  double pairs = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    bool is_like = false;
    for (std::size_t j = 0; j < i; ++j) {
      const double k = cosine(keys[i], keys[j]);
      const double v = cosine(values[i], values[j]);
      is_like = is_like || k * v >= threshold;
      out.keys += k;
      out.values += v;
      ++pairs;
    }
    out.redundant += is_like ? 1.0 / static_cast<double>(keys.size()) : 0;
  }
  out.keys /= pairs;
  out.values /= pairs;
  return out;
}

TEST(Similarity, of_random_entries_is_that_of_all_pairs) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const int n : {1, 2, 63, 64, 65, 200}) {
    std::vector<float> keys(3 * as_size(n));
    std::vector<float> values(keys.size());
    for (float& x : keys) x = normal(random);
    for (float& x : values) x = normal(random);
    const auto rows = [&](const std::vector<float>& from) {
      Matrix out;
      for (int i = 0; i < n; ++i) out.emplace_back(from.begin() + 3 * i, from.begin() + 3 * i + 3);
      return out;
    };
    if (n == 1) {
      EXPECT_EQ(similarity_of(keys, values, 3, 0.6).redundant, 0);
      continue;
    }
    const auto expected = slow_similarity(rows(keys), rows(values), 0.6);
    const auto found = similarity_of(keys, values, 3, 0.6);
    EXPECT_NEAR(found.redundant, expected.redundant, 1e-12) << n;
    EXPECT_NEAR(found.keys, expected.keys, kTolerance) << n;
    EXPECT_NEAR(found.values, expected.values, kTolerance) << n;
    EXPECT_TRUE(n < 60 || (found.redundant > 0.1 && found.redundant < 1)) << "nothing was compared";
  }
}

/// One layer as a method sees it.
struct Seen {
  attention::Shape shape;
  std::vector<Matrix> attention;  ///< [request][H_q][n]
  std::vector<Matrix> keys;       ///< [H_kv][n][d], rotated
  std::vector<Matrix> values;
};

std::vector<Matrix> rows_of(const policy::LayerView& view, bool of_keys) {
  std::vector<Matrix> out;
  std::vector<float> row(as_size(view.shape.head_dim));
  for (int head = 0; head < view.shape.kv_heads; ++head) {
    auto& rows = out.emplace_back();
    for (int j = 0; j < view.tokens(); ++j) {
      of_keys ? view.key(head, j, row) : view.value(head, j, row);
      rows.emplace_back(row.begin(), row.end());
    }
  }
  return out;
}

attention::ColumnRequest last(int rows, std::vector<float> power = {}) {
  return {{attention::QueryRowSet::Kind::last, rows, {}}, attention::Reduction::sum, std::move(power)};
}

/// A block whose attention is exactly scale * distance^-exponent, over distances 1 to 7.
documents::BlockAttention exact_block(int token, float exponent, double scale) {
  documents::BlockAttention out{{token, exponent, static_cast<float>(scale)}, {}, {}};
  for (int x = 1; x <= 7; ++x) out.curve.push_back(scale * std::pow(x, -exponent));
  out.law = documents::power_law_of(out.curve);
  return out;
}

void expect_series(const Record& record, const char* name, const Vector& expected) {
  const auto& found = record.series.at(name);
  ASSERT_EQ(found.size(), expected.size()) << name;
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-5 + 1e-4 * std::abs(expected[i])) << name << " " << i;
}

TEST(BlockRanking, of_a_case_by_hand) {
  // In layer 0 block 4 stands out from eleven equal ones; in layer 1 it is only the first of many.
  BlockRanking ranking;
  std::vector<documents::BlockAttention> first;
  std::vector<documents::BlockAttention> second;
  for (int b = 0; b < 12; ++b) {
    first.push_back(b == 4 ? exact_block(64 * b, 0, 0.5) : exact_block(64 * b, 1, b == 7 ? 0.01 : 0.1));
    second.push_back(exact_block(64 * b, b == 4 ? 0.5F : 1 + 0.25F * static_cast<float>(b), 0.1));
  }
  ranking.add(std::move(first));
  ranking.add(std::move(second));
  const auto record = ranking.record();
  expect_series(record, "stable", {1, 0});
  EXPECT_EQ(record.score, 0.5);
  EXPECT_EQ(record.values.at("stable_early"), 1);
  EXPECT_EQ(record.values.at("stable_late"), 0) << "one of two layers decides";
  // Means by rank over the two layers: 0 and 0.5; then 1 and the remaining exponents of layer 1 in order, without 2
  // (block 4).
  Vector exponents = {0.25};
  for (int b = 0; b < 12; ++b) {
    if (b != 4) exponents.push_back((1 + 1 + 0.25 * b) / 2);
  }
  expect_series(record, "exponents", exponents);
  EXPECT_NEAR(record.values.at("exponent_first"), 0.25, 1e-6);
  EXPECT_NEAR(record.values.at("exponent_last"), (1 + 3.75) / 2, 1e-6);
  EXPECT_NEAR(record.values.at("exponent"), std::accumulate(exponents.begin(), exponents.end(), 0.0) / 12, 1e-6);
  // Among equal exponents, the block with the least attention is last.
  EXPECT_NEAR(record.values.at("attention_first"), (0.5 + 0.1) / 2, 1e-6);
  EXPECT_NEAR(record.values.at("attention_last"), (0.01 + 0.1) / 2, 1e-6);
  EXPECT_NEAR(record.values.at("explained_first"), 0.5, 1e-9) << "nothing varies in layer 0";
  EXPECT_NEAR(record.values.at("explained_last"), 1, 1e-9);
  // Means of log10 of the distances 1; 2 and 3; 4 to 7.
  const Vector x = {0, std::log10(6.0) / 2, std::log10(4.0 * 5 * 6 * 7) / 4};
  Vector near;
  Vector far;
  for (const double log_x : x) {
    near.push_back((std::log10(0.5) + -1 - 0.5 * log_x) / 2);
    far.push_back((-2 - log_x + -1 - 3.75 * log_x) / 2);
  }
  for (const char* name : {"first", "first_law"}) expect_series(record, name, near);
  for (const char* name : {"last", "last_law"}) expect_series(record, name, far);
}

class AttentionTest : public testing::Test {
 protected:
  /// Each layer of a prompt, captured by a method that requests these statistics.
  std::vector<Seen> see(std::span<const Token> tokens, const std::vector<attention::ColumnRequest>& asked) {
    std::vector<Seen> out;
    auto registry = policy::built_in();
    registry.presets.push_back(
        {.name = "watching", .summary = "", .paper = "", .options = {}, .build = [&](const policy::Options&) {
           policy::Method method;
           std::vector<policy::ResultPlace<attention::ColumnStatistics>> statistics;
           for (const auto& what : asked) {
             const auto part = policy::observe_columns("", [what](const policy::LayerPrompt&, int) { return what; });
             statistics.push_back(method.observers.add(part, {.ranking = true}));
           }
           method.selection.always_kept = {"", [](const policy::LayerPrompt&, int) { return policy::AlwaysKept{}; }};
           method.selection.least = {"", [](const policy::LayerPrompt&) { return 0; }};
           method.selection.score = {"", [&, statistics](const policy::LayerView& view, const policy::AlwaysKept&) {
                                       Seen& seen = out.emplace_back();
                                       seen.shape = view.shape;
                                       for (const auto one : statistics) {
                                         auto& heads = seen.attention.emplace_back();
                                         for (int h = 0; h < view.shape.query_heads; ++h) {
                                           const auto row = view[one].head(h);
                                           heads.emplace_back(row.begin(), row.end());
                                         }
                                       }
                                       seen.keys = rows_of(view, true);
                                       seen.values = rows_of(view, false);
                                       return policy::Scores(view.shape.kv_heads, view.tokens());
                                     }};
           method.schedule = policy::Schedule::once;
           return method;
         }});
    CacheOptions options;
    options.spec = Spec::parse("watching", registry);
    options.budget = Budget::parse("1");
    options.kv_type = KvType::parse("f32");
    session_.prefill(tokens, std::span(&options, 1));
    return out;
  }

  static CacheOptions cache(const char* spec, const char* budget) {
    CacheOptions out;
    out.spec = Spec::parse(spec);
    if (*budget != '\0') out.budget = Budget::parse(budget);
    out.kv_type = KvType::parse("f32");
    return out;
  }

  std::vector<Record> measure(const Task& task, std::vector<Method> methods, Protocol protocol = Protocol::aware) {
    return Group(*data_.model(), task.samples.front(), protocol, std::move(methods)).measure(session_, task);
  }

  static Sample sample() {
    Sample out;
    out.task = "t";
    out.prompt.text = "The keeper of the lighthouse hid his coins in a green teapot, and nobody found them.";
    out.prompt.question = " Where did he hide the coins?";
    out.prompt.format = PromptFormat::raw;
    out.references = {""};
    out.max_tokens = 0;
    return out;
  }

  std::vector<Token> tokens() const {
    const auto prompt = data_.model()->tokenize(sample().prompt);
    auto out = prompt.text;
    out.insert(out.end(), prompt.question.begin(), prompt.question.end());
    return out;
  }

  TaskData data_;
  Session session_{data_.model(), single()};
};

TEST_F(AttentionTest, rows_are_those_that_methods_observe) {
  const auto all = tokens();
  const int n = static_cast<int>(all.size());
  const auto expected = see(all, {last(1), last(1, {1.5F})});
  std::size_t layers = 0;
  observe(session_, all, [&](const LayerAttention& layer) {
    const Seen& seen = expected.at(layers++);
    for (int h = 0; h < seen.shape.query_heads; ++h) {
      const HeadAttention attention(layer, h / seen.shape.group());
      const auto row = attention.row(h, n - 1);
      const auto sharper = attention.row(h, n - 1, 1.5);
      Vector sums(as_size(n));
      for (int i = 0; i < n; ++i) {
        const auto one = attention.row(h, i);
        EXPECT_NEAR(std::accumulate(one.begin(), one.end(), 0.0), 1, 1e-12);
        for (std::size_t j = 0; j < one.size(); ++j) sums[j] += one[j];
      }
      for (int j = 0; j < n; ++j) {
        EXPECT_NEAR(row[j], seen.attention[0][h][j], kTolerance);
        EXPECT_NEAR(sharper[j], seen.attention[1][h][j], kTolerance);
        EXPECT_NEAR(sums[j], layer.sums->head(h)[j], n * kTolerance);
        for (int c = 0; c < seen.shape.head_dim; ++c)
          EXPECT_EQ(attention.value(j)[c], seen.values[h / seen.shape.group()][j][c]);
      }
    }
  });
  EXPECT_EQ(layers, expected.size());
  EXPECT_EQ(layers, 2U);
}

TEST_F(AttentionTest, concentration_is_that_of_the_observed_sums) {
  const auto all = tokens();
  const int n = static_cast<int>(all.size());
  const auto records = measure({{sample()}, concentrating()}, {cache("full", ""), cache("streaming-llm", "20")});
  Vector in_tenth;
  Vector kept;
  Vector best;
  for (const auto& layer : see(all, {last(32)})) {
    for (const auto& head : layer.attention[0]) {
      auto sorted = head;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      const double sum = std::accumulate(head.begin(), head.end(), 0.0);
      const auto first = [&](int count) { return std::accumulate(sorted.begin(), sorted.begin() + count, 0.0) / sum; };
      in_tenth.push_back(first((n + 9) / 10));
      best.push_back(first(20));
      kept.push_back(
          (std::accumulate(head.begin(), head.begin() + 4, 0.0) + std::accumulate(head.end() - 16, head.end(), 0.0)) /
          sum);
    }
  }
  const auto mean = [](const Vector& x) { return std::accumulate(x.begin(), x.end(), 0.0) / std::ssize(x); };
  EXPECT_NEAR(records[0].score, 1, 1e-12);
  EXPECT_NEAR(records[0].values.at("best"), 1, 1e-12);
  EXPECT_NEAR(records[0].values.at("mass@10"), mean(in_tenth), kTolerance);
  EXPECT_EQ(records[1].values.at("mass@10"), records[0].values.at("mass@10")) << "a matter of the prompt";
  EXPECT_NEAR(records[1].score, mean(kept), kTolerance);
  EXPECT_NEAR(records[1].values.at("best"), mean(best), kTolerance);
  EXPECT_LT(mean(kept), mean(best));
  ASSERT_EQ(records[1].series.at("kept_mass").size(), kept.size()) << "one for each query head of each layer";
  for (std::size_t h = 0; h < kept.size(); ++h) EXPECT_NEAR(records[1].series.at("kept_mass")[h], kept[h], 1e-4);
}

/// A layer's output projection from the file, [width][H_q * d].
Matrix projection_in_file(const std::string& path, int layer) {
  ggml_context* tensors = nullptr;
  gguf_context* const file = gguf_init_from_file(path.c_str(), {.no_alloc = false, .ctx = &tensors});
  const ggml_tensor* const tensor =
      ggml_get_tensor(tensors, ("blk." + std::to_string(layer) + ".attn_output.weight").c_str());
  Matrix out;
  for (std::int64_t i = 0; i < tensor->ne[1]; ++i) {
    const float* const row = static_cast<const float*>(tensor->data) + i * tensor->ne[0];
    out.emplace_back(row, row + tensor->ne[0]);
  }
  gguf_free(file);
  ggml_free(tensors);
  return out;
}

/// The output of a layer for one query, from the entries that each KV head keeps.
Vector output(const Seen& layer, const Matrix& projection, const std::vector<std::vector<char>>& keeps) {
  Vector out(projection.size());
  const auto dim = as_size(layer.shape.head_dim);
  for (std::size_t h = 0; h < layer.attention[0].size(); ++h) {
    const auto& row = layer.attention[0][h];
    const auto kv = h / as_size(layer.shape.group());
    double sum = 0;
    Vector of_head(dim);
    for (std::size_t j = 0; j < row.size(); ++j) {
      if (keeps[kv][j] == 0) continue;
      sum += row[j];
      for (std::size_t c = 0; c < dim; ++c) of_head[c] += row[j] * layer.values[kv][j][c];
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t c = 0; c < dim; ++c) out[i] += projection[i][h * dim + c] * of_head[c] / sum;
    }
  }
  return out;
}

/// Twice the longest projected value of any head.
double twice_largest(const Seen& layer, const Matrix& projection) {
  const auto dim = as_size(layer.shape.head_dim);
  double most = 0;
  for (std::size_t h = 0; h < layer.attention[0].size(); ++h) {
    for (const auto& value : layer.values[h / as_size(layer.shape.group())]) {
      double sum = 0;
      for (const auto& row : projection) {
        double x = 0;
        for (std::size_t c = 0; c < dim; ++c) x += row[h * dim + c] * value[c];
        sum += std::abs(x);
      }
      most = std::max(most, sum);
    }
  }
  return 2 * most;
}

TEST_F(AttentionTest, loss_and_bound_are_those_of_the_theorem) {
  constexpr int kAnswer = 2;
  auto asked = sample();
  asked.max_tokens = kAnswer;
  const auto records = measure({{asked}, losing(kAnswer), Against::full}, {cache("streaming-llm:sinks=3", "10")});
  // The full cache's greedy tokens; each is found by reading the whole text before it again.
  auto all = tokens();
  const std::size_t n = all.size();
  const CacheOptions full;
  for (int i = 0; i < kAnswer; ++i) {
    const auto logits = session_.prefill(all, std::span(&full, 1)).logits;
    all.push_back(static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  Vector loss(2);
  Vector bound(2);
  Vector mass(2);
  for (std::size_t q = 0; q < kAnswer; ++q) {
    const auto seen = see(std::span(all).first(n + q + 1), {last(1)});
    // The cache keeps the first 3 and the last 7 of the first `n` tokens, and the answer's tokens.
    std::vector<char> keep(n + q + 1, 1);
    std::fill(keep.begin() + 3, keep.begin() + static_cast<std::ptrdiff_t>(n) - 7, 0);
    const std::vector<std::vector<char>> keeps(2, keep);
    const std::vector<std::vector<char>> everything(2, std::vector<char>(keep.size(), 1));
    for (std::size_t l = 0; l < 2; ++l) {
      const auto projection = projection_in_file(data_.model()->info().path, static_cast<int>(l));
      const auto whole = output(seen[l], projection, everything);
      const auto part = output(seen[l], projection, keeps);
      double distance = 0;
      for (std::size_t i = 0; i < whole.size(); ++i) distance += std::abs(whole[i] - part[i]);
      double evicted = 0;
      for (const auto& row : seen[l].attention[0]) {
        for (std::size_t j = 0; j < row.size(); ++j) evicted += keep[j] == 0 ? row[j] : 0;
      }
      loss[l] += distance / kAnswer;
      bound[l] += twice_largest(seen[l], projection) * evicted / kAnswer;
      mass[l] += (1 - evicted / 4) / kAnswer;
    }
  }
  const auto& record = records.front();
  for (std::size_t l = 0; l < 2; ++l) {
    EXPECT_NEAR(record.series.at("loss")[l], loss[l], 1e-3 * loss[l]) << l;
    // The measure takes the largest value over all tokens, including the last query's.
    EXPECT_NEAR(record.series.at("bound")[l], bound[l], 0.05 * bound[l]) << l;
    EXPECT_GT(loss[l], 0);
  }
  EXPECT_NEAR(record.values.at("loss"), (loss[0] + loss[1]) / 2, 1e-3 * loss[0]);
  EXPECT_NEAR(record.score, (mass[0] + mass[1]) / 2, kTolerance);
}

TEST_F(AttentionTest, no_loss_is_larger_than_its_bound) {
  auto asked = sample();
  asked.max_tokens = 8;
  std::vector<Method> caches = {cache("full", "")};
  for (const char* spec : {"streaming-llm", "snapkv:window=4", "ada-snapkv:window=4", "ada(h2o)", "tova", "ahakv",
                           "sage-kv", "nacl", "knorm", "random", "chunk(snapkv:window=4)", "expected-attention"}) {
    for (const char* budget : {"12", "40"}) caches.emplace_back(cache(spec, budget));
  }
  for (const auto protocol : {Protocol::aware, Protocol::agnostic}) {
    const auto records = measure({{asked}, losing(8), Against::full}, caches, protocol);
    ASSERT_EQ(records.size(), caches.size());
    for (const auto& record : records) {
      const std::string what = record.key.spec + " " + record.key.budget + record.skipped;
      EXPECT_TRUE(record.skipped.empty()) << what;
      const auto& loss = record.series.at("loss");
      const auto& bound = record.series.at("bound");
      for (std::size_t l = 0; l < loss.size(); ++l) EXPECT_LE(loss[l], bound[l]) << what;
      EXPECT_EQ(record.key.spec == "full", record.values.at("loss") == 0) << what;
      EXPECT_EQ(record.key.spec == "full", record.score == 1) << what;
    }
  }
}

TEST_F(AttentionTest, all_kinds_of_projections_are_those_of_the_file) {
  for (const char* arch : {"gemma3", "phi3", "qwen2"}) {
    test::TempFolder folder;
    const std::string path = folder / "tiny.gguf";
    test::write_tiny_gguf(test::tiny_of(arch), path);
    const auto weights = model::Weights::load(path);
    const OutputProjection projection(*weights, 1);
    const auto expected = projection_in_file(path, 1);
    const auto dim = as_size(weights->hparams().layer(1).head_dim);
    ASSERT_EQ(as_size(projection.width()), expected.size()) << arch;
    Vector input(dim);
    for (std::size_t c = 0; c < dim; ++c) input[c] = 0.1 * static_cast<double>(c) - 1;
    Vector out(expected.size());
    projection.add(1, input, out);
    double l1 = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      double sum = 0;
      for (std::size_t c = 0; c < dim; ++c) sum += expected[i][dim + c] * input[c];
      EXPECT_NEAR(out[i], sum, 1e-9) << arch;
      l1 += std::abs(sum);
    }
    std::vector<float> values(input.begin(), input.end());
    values.resize(2 * dim);
    EXPECT_NEAR(projection.largest(1, values), l1, 1e-4 * l1) << arch;
  }
}

TEST_F(AttentionTest, kept_positions_are_told_by_head_and_part) {
  const int n = static_cast<int>(tokens().size());
  const auto records = measure({{sample()}, keeping()}, {cache("streaming-llm", "20"), cache("h2o", "20")});
  const auto& record = records.front();
  Vector kept = {0, 1, 2, 3};
  for (int j = n - 16; j < n; ++j) kept.push_back(j);
  for (const char* name : {"kept 0.0", "kept 0.1", "kept 1.0", "kept 1.1"}) EXPECT_EQ(record.series.at(name), kept);
  EXPECT_EQ(record.score, 16.0 / 20);
  double places = 0;
  for (const double position : kept) places += position / (n - 1) / 20;
  EXPECT_NEAR(record.values.at("position"), places, 1e-9);
  EXPECT_EQ(record.values.at("window"), 16.0 / 20);
  EXPECT_NEAR(record.values.at("local") + record.values.at("global"), 4.0 / 20, 1e-12);
  const auto& parts = record.series.at("parts");
  EXPECT_NEAR(std::accumulate(parts.begin(), parts.end(), 0.0), 1, 1e-3);
  EXPECT_NEAR(parts.front(), 4.0 / 20, 1e-4) << "each of " << n << " / 32 tokens";
  EXPECT_NE(records[1].series.at("kept 0.0"), kept);
}

/// Un-rotates a key by hand: adjacent pairs turn by position / 10000^(2 i / d).
Vector unrotated(Vector key, int position) {
  const std::size_t dim = key.size();
  for (std::size_t i = 0; i < dim / 2; ++i) {
    const double angle = -position * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
    const double x = key[2 * i];
    const double y = key[2 * i + 1];
    key[2 * i] = x * std::cos(angle) - y * std::sin(angle);
    key[2 * i + 1] = x * std::sin(angle) + y * std::cos(angle);
  }
  return key;
}

TEST_F(AttentionTest, redundancy_and_sparsity_are_those_of_the_equations) {
  const auto all = tokens();
  const auto n = all.size();
  const auto record = measure({{sample()}, repeating()}, {cache("full", "")}).front();
  std::size_t at = 0;
  double redundant = 0;
  const attention::ColumnRequest every{{attention::QueryRowSet::Kind::all, 0, {}}, attention::Reduction::sum, {}};
  for (const auto& layer : see(all, {every, last(32)})) {
    for (std::size_t kv = 0; kv < 2; ++kv, ++at) {
      auto keys = layer.keys[kv];
      for (std::size_t j = 0; j < n; ++j) keys[j] = unrotated(keys[j], static_cast<int>(j));
      const auto similarity = slow_similarity(keys, layer.values[kv], 0.6);
      EXPECT_NEAR(record.series.at("redundancy")[at], similarity.redundant, 1e-4);
      EXPECT_NEAR(record.series.at("key_similarity")[at], similarity.keys, 1e-4);
      EXPECT_NEAR(record.series.at("value_similarity")[at], similarity.values, 1e-4);
      redundant += similarity.redundant / 4;
      // The paper's equation 2 on the group's means, then equation 3.
      const auto group = [&](std::size_t what, std::size_t j) {
        return (layer.attention[what][2 * kv][j] + layer.attention[what][2 * kv + 1][j]) / 2;
      };
      double global = 0;
      double local = 0;
      for (std::size_t j = 0; j < n; ++j) global += group(0, j), local += group(1, j);
      Vector scores;
      for (std::size_t j = 0; j < n; ++j) scores.push_back(std::max(group(0, j) * local / global, group(1, j)));
      std::sort(scores.begin(), scores.end(), std::greater<>());
      const double whole = std::accumulate(scores.begin(), scores.end(), 0.0);
      std::size_t count = 0;
      for (double sum = 0; sum < 0.95 * whole; ++count) sum += scores[count];
      EXPECT_NEAR(record.series.at("sparsity")[at], 1 - static_cast<double>(count) / static_cast<double>(n),
                  1.1 / static_cast<double>(n));
    }
  }
  EXPECT_EQ(at, record.series.at("redundancy").size());
  EXPECT_NEAR(record.score, redundant, 1e-6);
  EXPECT_TRUE(redundant > 0 && redundant < 1) << redundant;
}

double second_half(const Vector& scores) {
  const auto middle = scores.begin() + std::ssize(scores) / 2 + std::ssize(scores) % 2;
  return std::accumulate(middle, scores.end(), 0.0) / std::accumulate(scores.begin(), scores.end(), 0.0);
}

TEST_F(AttentionTest, scores_by_position_are_ahakv_s) {
  constexpr int kBudget = 12;
  const auto all = tokens();
  const int n = static_cast<int>(all.size());
  const auto record = measure({{sample()}, scoring()}, {cache("ahakv", "12")}).front();
  std::vector<float> power;
  for (int i = n - 32; i < n; ++i)
    power.push_back(static_cast<float>(std::sqrt(std::max(1.0, 2 * std::log((i + 1.0) / kBudget)))));
  EXPECT_GT(power.front(), 1);
  const attention::ColumnRequest every{{attention::QueryRowSet::Kind::all, 0, {}}, attention::Reduction::sum, {}};
  double accumulated = 0;
  double recent = 0;
  double gain = 0;
  double prior = 0;
  double retained = 0;
  for (const auto& layer : see(all, {every, last(32), last(32, power)})) {
    for (std::size_t kv = 0; kv < 2; ++kv) {
      const auto group = [&](std::size_t what) {
        Vector out;
        for (std::size_t j = 0; j < all.size(); ++j)
          out.push_back(layer.attention[what][2 * kv][j] + layer.attention[what][2 * kv + 1][j]);
        return out;
      };
      accumulated += second_half(group(0)) / 4;
      recent += second_half(group(1)) / 4;
      auto scores = group(2);
      gain += second_half(scores) / 4;
      const double most = *std::max_element(scores.begin(), scores.end());
      const auto count = std::count_if(scores.begin(), scores.end(), [&](double x) { return x >= most / 100; });
      retained += static_cast<double>(count) / n / 4;
      Vector lengths;
      for (const auto& value : layer.values[kv])
        lengths.push_back(std::inner_product(value.begin(), value.end(), value.begin(), 0.0));
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        int near = 0;
        for (int k = std::max(0, j - 3); k <= std::min(n - 1, j + 3); ++k, ++near) sum += lengths[k];
        scores[j] *= sum / near;  // dividing by the largest would not change the shares
      }
      prior += second_half(scores) / 4;
    }
  }
  EXPECT_NEAR(record.values.at("all"), accumulated, 1e-4);
  EXPECT_NEAR(record.values.at("recent"), recent, 1e-4);
  EXPECT_NEAR(record.values.at("gain"), gain, 1e-4);
  EXPECT_NEAR(record.score, prior, 1e-4);
  EXPECT_NEAR(record.values.at("retained"), retained, 1.1 / n);
  EXPECT_NE(gain, recent);
  const auto& parts = record.series.at("all");
  EXPECT_EQ(parts.size(), 32U);
  EXPECT_GT(parts.front(), parts[16]) << "what all queries see has the most";
  const auto whole = measure({{sample()}, scoring()}, {cache("full", "")}).front();
  EXPECT_EQ(whole.values.at("gain"), whole.values.at("recent")) << "a budget of all has no gain";
}

/// One layer's block statistics as in the paper's appendix, from all rows of attention, averaged over heads.
struct SlowBlock {
  double exponent = 0;
  double mean = 0;
  Vector log_by_class;  ///< means of log10 at distances of 1, 2 to 3, …
};

std::vector<SlowBlock> slow_blocks(const LayerAttention& layer) {
  const int n = layer.tokens();
  const auto& shape = layer.view.shape;
  Matrix attention(as_size(n), Vector(as_size(n)));
  for (int h = 0; h < shape.query_heads; ++h) {
    const HeadAttention head(layer, h / shape.group());
    for (int i = 0; i < n; ++i) {
      const auto row = head.row(h, i);
      for (std::size_t j = 0; j < row.size(); ++j) attention[i][j] += row[j] / shape.query_heads;
    }
  }
  std::vector<SlowBlock> out;
  const int blocks = (n + 63) / 64;
  for (int b = 1; b < blocks - 2; ++b) {
    SlowBlock best;
    int token = -1;
    for (int j = 64 * b; j < 64 * b + 64; ++j) {
      double sum = 0;
      for (int i = j + 1; i < n; ++i) sum += attention[i][j];
      if (token < 0 || sum / (n - 1 - j) > best.mean) token = j, best.mean = sum / (n - 1 - j);
    }
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    Vector counts;
    const int points = n - 1 - token;
    for (int d = 1; d <= points; ++d) {
      const double x = std::log(d);
      const double y = std::log(std::max(1e-8, attention[token + d][token]));
      sx += x, sy += y, sxx += x * x, sxy += x * y;
      std::size_t place = 0;
      while ((2 << place) <= d) ++place;
      if (place >= counts.size()) counts.push_back(0), best.log_by_class.push_back(0);
      counts[place] += 1;
      best.log_by_class[place] += y / std::log(10.0);
    }
    best.exponent = std::max(0.0, -(points * sxy - sx * sy) / (points * sxx - sx * sx));
    for (std::size_t i = 0; i < counts.size(); ++i) best.log_by_class[i] /= counts[i];
    out.push_back(best);
  }
  return out;
}

TEST_F(AttentionTest, blocks_are_those_of_the_appendix_and_of_documents) {
  auto asked = sample();
  asked.prompt.text.clear();
  for (int i = 0; i < 110; ++i) asked.prompt.text += "word " + std::to_string(i * i % 97) + " ";
  const auto read = tokenized(*data_.model(), asked, Protocol::aware, 0);
  const auto all = tokens_of(read);
  ASSERT_GT(all.size(), 833U);
  const auto records = measure({{asked}, representing()}, {cache("full", ""), cache("snapkv:window=8", "64")});
  const auto& record = records.front();
  EXPECT_EQ(records[1].series, record.series) << "a matter of the prompt";
  Vector exponents;
  Vector attention;
  Matrix first;
  std::size_t layers = 0;
  observe(session_, all, [&](const LayerAttention& layer) {
    auto blocks = slow_blocks(layer);
    std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) {  // some blocks' attention does not fall
      return a.exponent != b.exponent ? a.exponent < b.exponent : a.mean > b.mean;
    });
    exponents.resize(blocks.size());
    attention.resize(blocks.size());
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
      exponents[rank] += blocks[rank].exponent / 2;
      attention[rank] += blocks[rank].mean / 2;
    }
    first.push_back(blocks.front().log_by_class);
    ++layers;
  });
  ASSERT_EQ(layers, 2U);
  expect_series(record, "exponents", exponents);
  expect_series(record, "attention", attention);
  EXPECT_LT(exponents.front(), exponents.back());
  for (std::size_t i = 0; i < 6; ++i)  // classes that are complete in both layers
    EXPECT_NEAR(record.series.at("first")[i], (first[0][i] + first[1][i]) / 2, 1e-4) << i;
  // The same statistics, from a document that is read on its own.
  const auto document = documents::ingest(session_, {"", ControlTokens::as_text, all}, {});
  std::vector<std::vector<documents::Representative>> representatives;
  Vector of_document(exponents.size());
  for (const auto& layer : document.head.layers) {
    representatives.push_back(layer.representatives);
    Vector sorted;
    for (const auto& r : layer.representatives) sorted.push_back(static_cast<double>(r.exponent));
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t rank = 0; rank < sorted.size(); ++rank) of_document[rank] += sorted[rank] / 2;
  }
  EXPECT_EQ(record.series.at("exponents"), brief(of_document));
  const auto singled_out = documents::singling_out(representatives);
  EXPECT_EQ(record.series.at("stable"), Vector(singled_out.begin(), singled_out.end()));
}

TEST_F(AttentionTest, prompts_of_few_blocks_are_skipped) {
  const auto record = measure({{sample()}, representing()}, {cache("full", "")}).front();
  EXPECT_EQ(record.skipped, "the prompt has " + std::to_string(tokens().size()) +
                                " tokens, but blocks can only be compared from 833 tokens on");
  EXPECT_TRUE(record.series.empty());
}

TEST_F(AttentionTest, the_loss_of_what_merges_is_refused_before_anything_is_measured) {
  data_.write("longbench-mini/some.jsonl", R"({"prompt": "Some words of a prompt that is long enough."})");
  Evaluation evaluation;
  evaluation.tasks = data_.make("attention/loss");
  evaluation.protocols = {Protocol::aware};
  for (const char* spec : {"ems:window=4", "cam:prompt=merge"}) {
    evaluation.methods = {cache("full", ""), cache(spec, "20")};
    test::TempFolder folder;
    RecordFile records(folder / "out", "1");
    EXPECT_EQ(test::usage_error([&] { run(session_, evaluation, records, {}); }),
              "attention/loss cannot measure " + evaluation.methods[1].spec() +
                  ": it changes the vectors of kept entries, but the bound only holds for eviction");
    EXPECT_TRUE(records.records().empty());
  }
  evaluation.methods = {cache("cam", "20"), cache("ems:merge=off,window=4", "20")};
  test::TempFolder folder;
  RecordFile records(folder / "out", "1");
  run(session_, evaluation, records, {});
  ASSERT_EQ(records.records().size(), 2U);
  for (const auto& record : records.records()) EXPECT_GT(record.values.at("loss"), 0) << record.key.spec;
}

TEST_F(AttentionTest, windows_are_left_out_and_sinks_count) {
  test::TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  test::write_tiny_gguf(test::tiny_of("gpt-oss"), path);
  const auto model = Model::load(path);
  Session session(model, single());
  const auto& hparams = model->impl().weights->hparams();
  std::size_t layers = 0;
  observe(session, tokens(), [&](const LayerAttention& layer) {
    ++layers;
    EXPECT_EQ(hparams.layer(layer.view.number).window, 0);
    ASSERT_FALSE(layer.view.shape.sink_logits.empty());
    const auto row = HeadAttention(layer, 0).row(0, layer.tokens() - 1);
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    EXPECT_LT(sum, 1);
    // The sum of all rows equals the engine's sums.
    Vector sums(as_size(layer.tokens()));
    const HeadAttention attention(layer, 0);
    for (int i = 0; i < layer.tokens(); ++i) {
      const auto one = attention.row(0, i);
      for (std::size_t j = 0; j < one.size(); ++j) sums[j] += one[j];
    }
    for (int j = 0; j < layer.tokens(); ++j) EXPECT_NEAR(sums[j], layer.sums->head(0)[j], layer.tokens() * kTolerance);
  });
  EXPECT_EQ(layers, as_size(hparams.n_global));
  EXPECT_LT(hparams.n_global, hparams.n_layer);
  const Task task{{sample()}, losing(2), Against::full};
  for (const auto& record : Group(*model, sample(), Protocol::aware, {cache("streaming-llm", "20"), cache("full", "")})
                                .measure(session, task)) {
    for (std::size_t l = 0; l < layers; ++l) EXPECT_LE(record.series.at("loss")[l], record.series.at("bound")[l]);
  }
}

}  // namespace
}  // namespace winnow::eval
