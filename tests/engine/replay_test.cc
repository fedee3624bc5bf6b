// SPDX-License-Identifier: Apache-2.0
// Attention of replays, compared with a network with textbook attention.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/repetition.h"
#include "network/network.h"
#include "support/cache_options.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/session.h"

namespace winnow::test {
namespace {

using Scores = TextbookScores;

using test::options_of;

Scores larger(Scores a, const Scores& b) {
  for (std::size_t layer = 0; layer < a.size(); ++layer) {
    for (std::size_t head = 0; head < a[layer].size(); ++head)
      std::ranges::transform(a[layer][head], b[layer][head], a[layer][head].begin(),
                             [](double x, double y) { return std::max(x, y); });
  }
  return a;
}

class ReplayTest : public testing::Test {
 protected:
  ReplayTest() {
    TinyModel tiny;
    tiny.n_layer = 3;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    write_tiny_gguf(tiny, path_);
    model_ = Model::load(path_);
  }

  /// Reads the text and one chunk's repetition for each chunk, with attention in double precision. Returns the largest
  /// attention to each token of the chunk from the rows for which counts(row, token) is true. Rows are counted from the
  /// copy of the text's first token.
  template <class Counts>
  Scores reference(const std::vector<Token>& text, int chunk, const Counts& counts) const {
    const int n = static_cast<int>(text.size());
    Network network(path_, 1, 1, 2 * n + 200);
    const auto& h = network.hparams();
    Scores out(z(h.n_layer), std::vector<std::vector<double>>(z(h.layer(0).n_head_kv), std::vector<double>(z(n))));
    for (int first = 0; first < n; first += chunk) {
      const int end = std::min(n, first + chunk);
      auto tokens = text;
      const auto more = repetition(*model_, text, first, end);
      tokens.insert(tokens.end(), more.begin(), more.end());
      const int copy = static_cast<int>(tokens.size()) - (end - first);
      std::vector<DenseAttention::Row> rows;
      for (int i = 0; i < static_cast<int>(tokens.size()); ++i) rows.push_back({0, i});
      network.attention().set_observer(
          [&](int layer, const DenseAttention::Row& row, int head, std::span<const double> weights) {
            auto& score = out[layer][head / (h.layer(layer).group())];
            for (int j = first; row.position >= n && j < end; ++j) {
              if (counts(row.position - copy + first, j)) score[j] = std::max(score[j], weights[j]);
            }
          });
      network.step(tokens, rows);
    }
    return out;
  }
  Scores reference(const std::vector<Token>& text, int chunk) const {
    return reference(text, chunk, [](int, int) { return true; });
  }
  /// Only from the copy of each token and the row before it.
  Scores of_copies(const std::vector<Token>& text, int chunk) const {
    return reference(text, chunk, [](int row, int token) { return row == token || row == token - 1; });
  }

  /// The largest attention of the text's last rows.
  Scores of_window(const std::vector<Token>& text, int window) const {
    const int n = static_cast<int>(text.size());
    Network network(path_, 1, 1, n);
    const auto& h = network.hparams();
    Scores out(z(h.n_layer), std::vector<std::vector<double>>(z(h.layer(0).n_head_kv), std::vector<double>(z(n))));
    std::vector<DenseAttention::Row> rows;
    for (int i = 0; i < n; ++i) rows.push_back({0, i});
    network.attention().set_observer(
        [&](int layer, const DenseAttention::Row& row, int head, std::span<const double> weights) {
          auto& score = out[layer][head / (h.layer(layer).group())];
          for (int j = 0; row.position >= n - window && j <= row.position; ++j)
            score[j] = std::max(score[j], weights[j]);
        });
    network.step(text, rows);
    return out;
  }

  /// The same, each chunk repeated as if the text ended with it.
  Scores reference_at_once(const std::vector<Token>& text, int chunk) const {
    const int n = static_cast<int>(text.size());
    Scores out;
    for (int end = std::min(n, chunk);; end = std::min(n, end + chunk)) {
      const auto scores = reference({text.begin(), text.begin() + end}, chunk);
      if (out.empty()) out = scores;
      for (std::size_t layer = 0; layer < out.size(); ++layer) {
        for (std::size_t head = 0; head < out[layer].size(); ++head) {
          const auto known = static_cast<std::ptrdiff_t>(out[layer][head].size());
          auto& to = out[layer][head];
          to.insert(to.end(), scores[layer][head].begin() + known, scores[layer][head].end());
        }
      }
      if (end == n) return out;
    }
  }

  /// Reads the text and then its last tokens again, in one sequence. Returns the largest attention from the repeated
  /// tokens.
  Scores reference_after(const std::vector<Token>& text, int again) const {
    const int n = static_cast<int>(text.size());
    Network network(path_, 1, 1, n + again);
    const auto& h = network.hparams();
    Scores out(z(h.n_layer), std::vector<std::vector<double>>(z(h.layer(0).n_head_kv), std::vector<double>(z(n))));
    auto tokens = text;
    tokens.insert(tokens.end(), text.end() - again, text.end());
    std::vector<DenseAttention::Row> rows;
    for (int i = 0; i < n + again; ++i) rows.push_back({0, i});
    network.attention().set_observer(
        [&](int layer, const DenseAttention::Row& row, int head, std::span<const double> weights) {
          auto& score = out[layer][head / (h.layer(layer).group())];
          for (int j = 0; row.position >= n && j < n; ++j) score[j] = std::max(score[j], weights[j]);
        });
    network.step(tokens, rows);
    return out;
  }

  std::vector<std::vector<std::vector<std::int32_t>>> kept(const std::vector<Token>& text, std::size_t cut,
                                                           const std::string& spec, int budget) const {
    const auto options = options_of(spec, std::to_string(budget), "f32");
    Session session(model_, {2, Precision::f32, 32});
    const std::vector<std::vector<Token>> question = {{text.begin() + static_cast<std::ptrdiff_t>(cut), text.end()}};
    const auto prefilled = session.prefill(std::span(text).first(cut), question, std::span(&options, 1));
    return prefilled.front().caches.front().kept();
  }

  std::vector<Token> tokens(int n, unsigned seed) const { return random_tokens(n, model_->info().n_vocab, seed); }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::shared_ptr<const Model> model_;
};

/// Expects that no evicted entry has a higher score than a kept one, up to f32 rounding. Ignores tokens before `sinks`.
void expect_best(const std::vector<std::int32_t>& kept, const std::vector<double>& score, int sinks) {
  double worst = std::numeric_limits<double>::infinity();
  double best = 0;
  for (int j = sinks; j < static_cast<int>(score.size()); ++j) {
    if (std::binary_search(kept.begin(), kept.end(), j)) {
      worst = std::min(worst, score[j]);
    } else {
      best = std::max(best, score[j]);
    }
  }
  EXPECT_GE(worst, best * (1 - 1e-4));
}

TEST_F(ReplayTest, kvzip_keeps_what_repeating_the_text_looks_at) {
  const auto text = tokens(150, 1);
  for (const int chunk : {50, 64, 2048}) {
    const auto score = reference(text, chunk);
    for (const std::size_t cut : {z(150), z(97)}) {  // with a question the whole prompt is repeated
      const auto sets = kept(text, cut, "kvzip:chunk=" + std::to_string(chunk), 40);
      for (std::size_t layer = 0; layer < sets.size(); ++layer) {
        for (std::size_t head = 0; head < sets[layer].size(); ++head) {
          const auto& set = sets[layer][head];
          EXPECT_EQ(set.size(), 40U);
          EXPECT_EQ((std::vector<std::int32_t>{set.begin(), set.begin() + 4}), (std::vector<std::int32_t>{0, 1, 2, 3}));
          SCOPED_TRACE("chunk " + std::to_string(chunk) + " layer " + std::to_string(layer) + " head " +
                       std::to_string(head));
          expect_best(set, score[layer][head], 4);
        }
      }
    }
  }
}

TEST_F(ReplayTest, kvzip_keeps_what_repeating_each_chunk_at_once_looks_at) {
  const auto text = tokens(150, 1);
  for (const int chunk : {50, 64, 2048}) {
    const auto score = reference_at_once(text, chunk);
    for (const std::size_t cut : {z(150), z(97)}) {
      const auto sets = kept(text, cut, "kvzip:after=chunk,chunk=" + std::to_string(chunk), 40);
      for (std::size_t layer = 0; layer < sets.size(); ++layer) {
        for (std::size_t head = 0; head < sets[layer].size(); ++head) {
          SCOPED_TRACE("chunk " + std::to_string(chunk) + " layer " + std::to_string(layer) + " head " +
                       std::to_string(head));
          expect_best(sets[layer][head], score[layer][head], 4);
        }
      }
    }
  }
}

constexpr const char* kInner = "snapkv:window=3,rows=max,kernel=1,gqa=max";

/// Expects the last three entries, X's window, and the best of the others.
void expect_window_and_best(const std::vector<std::vector<std::vector<std::int32_t>>>& sets, const Scores& score) {
  for (std::size_t layer = 0; layer < sets.size(); ++layer) {
    for (std::size_t head = 0; head < sets[layer].size(); ++head) {
      const auto& set = sets[layer][head];
      EXPECT_EQ((std::vector<std::int32_t>{set.end() - 3, set.end()}), (std::vector<std::int32_t>{147, 148, 149}));
      SCOPED_TRACE("layer " + std::to_string(layer) + " head " + std::to_string(head));
      expect_best(set, {score[layer][head].begin(), score[layer][head].end() - 3}, 0);
    }
  }
}

/// If the budget is far above `even`, the repetition's rows count as much as the window's.
TEST_F(ReplayTest, kvzip_around_a_method_keeps_what_repeating_the_text_looks_at) {
  const auto text = tokens(150, 1);
  const auto inner = fmt::format("kvzip({})", kInner);
  const auto score = larger(of_window(text, 3), of_copies(text, 64));
  expect_window_and_best(kept(text, 97, inner + ":chunk=64,even=0.001,demand=0,sharp=0", 40), score);
  EXPECT_EQ(kept(text, 97, inner + ":chunk=64,even=1000,sharp=0", 40), kept(text, 97, kInner, 40));
}

/// Heads that share a budget share the weight: it depends on the attention of the repetition in all layers.
TEST_F(ReplayTest, kvzip_around_a_method_weighs_a_repetition_by_its_demand_in_all_layers) {
  const auto text = tokens(150, 1);
  auto repeated = of_copies(text, 64);
  double demand = 0;
  for (const auto& layer : repeated) {
    for (const auto& head : layer) demand += std::accumulate(head.begin(), head.end(), 0.0);
  }
  const double multiple = 40 * 6 / demand / std::cbrt(0.5);  // so that the weight is 0.5
  for (auto& layer : repeated) {
    for (auto& head : layer) std::ranges::transform(head, head.begin(), [](double x) { return 0.5 * x; });
  }
  const auto score = larger(of_window(text, 3), repeated);
  const auto sets = kept(
      text, 97,
      fmt::format("ada(kvzip({}):chunk=64,even=0.001,demand={},sharp=0):floor=0,over=model", kInner, multiple), 40);
  std::vector<std::int32_t> all;
  std::vector<double> worth;
  for (std::size_t layer = 0; layer < sets.size(); ++layer) {
    for (std::size_t head = 0; head < 2; ++head) {
      for (const auto j : sets[layer][head]) {
        if (j < 147) all.push_back(static_cast<std::int32_t>(worth.size()) + j);
      }
      worth.insert(worth.end(), score[layer][head].begin(), score[layer][head].end() - 3);
    }
  }
  EXPECT_EQ(all.size(), 6U * (40 - 3));
  expect_best(all, worth, 0);
}

TEST_F(ReplayTest, kvzip_around_a_method_changes_nothing_in_a_network_that_cannot_repeat) {
  const auto text = tokens(150, 1);
  const auto repeated = fmt::format("kvzip({}):even=0.001,demand=0,after=chunk,chunk=64", kInner);
  for (const int budget : {20, 40, 100}) {
    EXPECT_EQ(kept(text, 97, repeated, budget), kept(text, 97, kInner, budget));
    EXPECT_EQ(kept(text, 97, fmt::format("ada({}):over=model", repeated), budget),
              kept(text, 97, fmt::format("ada({}):over=model", kInner), budget));
  }
}

TEST_F(ReplayTest, dapq_keeps_what_the_positions_of_the_answer_look_at) {
  const auto text = tokens(150, 1);
  for (const int queries : {8, 40}) {
    const auto score = reference_after(text, queries);
    for (const std::size_t cut : {z(150), z(97)}) {
      const auto spec = "dapq:recent=0,kernel=1,gqa=max,queries=" + std::to_string(queries);
      const auto sets = kept(text, cut, spec, 40);
      for (std::size_t layer = 0; layer < sets.size(); ++layer) {
        for (std::size_t head = 0; head < sets[layer].size(); ++head) {
          SCOPED_TRACE(spec + " layer " + std::to_string(layer) + " head " + std::to_string(head));
          EXPECT_EQ(sets[layer][head].size(), 40U);
          expect_best(sets[layer][head], score[layer][head], 0);
        }
      }
    }
  }
}

/// The heads of a layer share the budget, so their lanes differ in length.
TEST_F(ReplayTest, heads_share_a_budget_by_what_repeating_the_text_looks_at) {
  const auto text = tokens(150, 1);
  const auto score = reference(text, 64);
  const auto sets = kept(text, 150, "ada(kvzip:chunk=64):floor=0", 40);
  bool uneven = false;
  for (std::size_t layer = 0; layer < sets.size(); ++layer) {
    EXPECT_EQ(sets[layer][0].size() + sets[layer][1].size(), 80U);
    uneven |= sets[layer][0].size() != 40U;
    std::vector<std::int32_t> all;
    std::vector<double> worth;
    for (std::size_t head = 0; head < 2; ++head) {
      for (const auto j : sets[layer][head]) {
        if (j >= 4) all.push_back(static_cast<std::int32_t>(worth.size()) + j - 4);
      }
      worth.insert(worth.end(), score[layer][head].begin() + 4, score[layer][head].end());
    }
    expect_best(all, worth, 0);
  }
  EXPECT_TRUE(uneven);
}

/// The heads of all layers share the budget, in two passes.
TEST_F(ReplayTest, layers_share_a_budget_by_what_repeating_the_text_looks_at) {
  const auto text = tokens(150, 1);
  const auto score = reference(text, 64);
  for (const std::size_t cut : {z(150), z(97)}) {
    const auto sets = kept(text, cut, "kvzip:chunk=64,rank=model", 40);
    bool uneven = false;
    std::vector<std::int32_t> all;
    std::vector<double> worth;
    for (std::size_t layer = 0; layer < sets.size(); ++layer) {
      uneven |= sets[layer][0].size() + sets[layer][1].size() != 80U;
      for (std::size_t head = 0; head < 2; ++head) {
        EXPECT_EQ(sets[layer][head][3], 3) << "the sinks stay";
        for (const auto j : sets[layer][head]) {
          if (j >= 4) all.push_back(static_cast<std::int32_t>(worth.size()) + j - 4);
        }
        worth.insert(worth.end(), score[layer][head].begin() + 4, score[layer][head].end());
      }
    }
    EXPECT_EQ(all.size(), sets.size() * 2 * (40 - 4));
    expect_best(all, worth, 0);
    EXPECT_TRUE(uneven);
    EXPECT_EQ(kept(text, cut, "ada(kvzip:chunk=64):floor=0,over=model", 40), sets) << "the wrapper does the same";
  }
}

/// A turn is read in one pass.
TEST_F(ReplayTest, a_turn_is_ranked_within_each_layer) {
  const auto text = tokens(150, 1);
  std::vector<std::vector<std::vector<std::vector<std::int32_t>>>> sets;
  for (const char* spec : {"kvzip:chunk=64,rank=model", "ada(kvzip:chunk=64):floor=0"}) {
    const auto options = options_of(spec, "40", "f32");
    Session session(model_, {2, Precision::f32, 32});
    auto read = session.prefill(std::span(text).first(30), std::span(&options, 1));
    session.extend(read.caches[0], std::span(text).subspan(30));
    session.compress(read.caches[0], std::span(text).subspan(30));
    sets.push_back(read.caches[0].kept());
  }
  EXPECT_EQ(sets[0], sets[1]);
}

TEST_F(ReplayTest, kvzip_plus_weighs_that_by_what_it_adds_to_the_output) {
  const auto text = tokens(150, 1);
  for (const int chunk : {64, 2048}) {
    const auto score = plus_reference(path_, *model_, text, chunk);
    for (const std::size_t cut : {z(150), z(97)}) {
      const auto sets = kept(text, cut, "kvzip:normalize=plus,chunk=" + std::to_string(chunk), 40);
      for (std::size_t layer = 0; layer < sets.size(); ++layer) {
        for (std::size_t head = 0; head < sets[layer].size(); ++head) {
          SCOPED_TRACE("chunk " + std::to_string(chunk) + " layer " + std::to_string(layer) + " head " +
                       std::to_string(head));
          expect_best(sets[layer][head], score[layer][head], 4);
        }
      }
    }
  }
}

/// A replay adds rows after the prompt. It must not change the attention, entries or logits of other caches.
TEST_F(ReplayTest, a_replay_beside_others_changes_no_bit_of_theirs) {
  const auto text = tokens(110, 1);
  const std::vector<std::vector<Token>> questions = {tokens(40, 3), tokens(7, 2)};
  const std::vector<CacheOptions> others = {options_of("full"), options_of("ahakv", "40"),
                                            options_of("expected-attention", "40"), options_of("h2o", "40", "q8_0")};
  auto all = others;
  all.insert(all.begin() + 1, options_of("kvzip:chunk=32", "40"));
  all.push_back(options_of("ada(kvzip:chunk=32)", "40"));
  all.push_back(options_of("kvzip", "60"));
  all.push_back(options_of("dapq", "60"));
  all.push_back(options_of("kvzip:chunk=32,rank=model", "40"));
  Session session(model_, {2, Precision::automatic, 64});
  auto alone = session.prefill(text, questions, others);
  auto together = session.prefill(text, questions, all);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    EXPECT_EQ(alone[i].logits, together[i].logits);
    for (std::size_t c = 0; c < others.size(); ++c) {
      auto& beside = together[i].caches[c == 0 ? 0 : c + 1];
      EXPECT_EQ(alone[i].caches[c].kept(), beside.kept()) << others[c].spec.print();
      for (const Token token : tokens(10, 5))
        EXPECT_EQ(session.extend(alone[i].caches[c], std::span(&token, 1)),
                  session.extend(beside, std::span(&token, 1)));
    }
  }
}

/// With one layer and one head there is nothing to share, so two passes keep and evict the same entries as one.
TEST(SecondPass, begins_with_what_was_seen_of_each_entry) {
  TempFolder folder;
  TinyModel tiny;
  tiny.n_layer = 1;
  tiny.n_head_kv = 1;
  write_tiny_gguf(tiny, folder / "one.gguf");
  const auto model = Model::load(folder / "one.gguf");
  Session session(model, {1, Precision::f32, 64, Pack::automatic, calibrated(folder / "one.cal", *model)});
  const auto text = random_tokens(150, session.model().info().n_vocab, 1);
  for (const std::string spec : {"h2o", "ems", "ems:merge=off", "ahakv", "kvzap:when=step", "r-kv:buffer=3,window=2"}) {
    const std::vector caches = {options_of(spec, "40", "f32"), options_of("ada(" + spec + "):over=model", "40", "f32")};
    auto read = session.prefill(text, caches);
    for (const Token token : random_tokens(30, session.model().info().n_vocab, 2)) {
      EXPECT_EQ(session.extend(read.caches[0], std::span(&token, 1)),
                session.extend(read.caches[1], std::span(&token, 1)))
          << spec;
      EXPECT_EQ(read.caches[0].kept(), read.caches[1].kept()) << spec;
    }
  }
}

TEST_F(ReplayTest, a_replay_leaves_no_trace_but_what_stays) {
  const auto ids = tokens(150, 1);
  const std::vector<CacheOptions> caches = {options_of("kvzip:chunk=64", "149", "f32"),
                                            options_of("kvzip:chunk=64", "150", "f32"), options_of("full", "", "f32")};
  Session session(model_, {2, Precision::f32, 64});
  const auto prefilled = session.prefill(ids, caches);
  EXPECT_EQ(prefilled.caches[0].stats().tokens_seen, 150);
  EXPECT_EQ(prefilled.caches[0].stats().entries_max, 149);
  EXPECT_EQ(prefilled.caches[1].kept(), prefilled.caches[2].kept());
  for (const auto& layer : prefilled.caches[0].kept()) {
    for (const auto& head : layer) EXPECT_LT(head.back(), 150);
  }
}

}  // namespace
}  // namespace winnow::test
