// SPDX-License-Identifier: Apache-2.0
// Tests of compressing a conversation's turns when they end.
#include <gtest/gtest.h>

#include <algorithm>

#include "cache/growing_lanes.h"
#include "engine/sequence.h"
#include "network/network.h"
#include "policy/views.h"
#include "support/cache_options.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/methods.h"
#include "winnow/session.h"

namespace winnow::test {
namespace {

std::size_t z(int i) { return static_cast<std::size_t>(i); }

using Positions = std::vector<std::int32_t>;

class CompressTest : public testing::Test {
 protected:
  explicit CompressTest(int layers = 3) {
    TinyModel tiny;
    tiny.n_layer = layers;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    write_tiny_gguf(tiny, path_);
    model_ = Model::load(path_);
  }

  std::vector<Token> tokens(int n, unsigned seed = 1) const { return random_tokens(n, model_->info().n_vocab, seed); }

  /// A prompt of `first` tokens that is compressed, and the others after it.
  Cache read(Session& session, std::span<const Token> text, int first, const CacheOptions& options) const {
    Cache cache = std::move(session.prefill(text.first(z(first)), std::span(&options, 1)).caches.front());
    if (z(first) < text.size()) session.extend(cache, text.subspan(z(first)));
    return cache;
  }

  /// Compares the entries that a turn after a prompt keeps with textbook attention, for snapkv:window=8,kernel=1, alone
  /// or in ada(X).
  void expect_what_the_last_rows_attend_to(int prompt, const std::string& spec, bool shared) const;

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::shared_ptr<const Model> model_;
};

class CompressOneLayer : public CompressTest {
 protected:
  CompressOneLayer() : CompressTest(1) {}
};

/// Specs of all methods that can evict once.
std::vector<std::string> one_shot_specs() {
  std::vector<std::string> out;
  for (const auto& method : list_methods()) {
    const auto has = [&](const char* name) {
      return std::any_of(method.options.begin(), method.options.end(), [&](const auto& o) { return o.name == name; });
    };
    std::vector<std::string> options;
    if (has("when")) options.emplace_back("when=prefill");
    if (has("window")) options.emplace_back("window=8");
    std::string spec = method.name;
    for (std::size_t i = 0; i < options.size(); ++i) spec += (i == 0 ? ":" : ",") + options[i];
    if (Spec::parse(spec).method().schedule != policy::Schedule::once) continue;
    out.push_back(spec);
    if (has("positions")) out.push_back(spec + (options.empty() ? ":" : ",") + "positions=cache");
  }
  for (const char* spec : {"ada(h2o:when=prefill):floor=0", "chunk(snapkv:window=8)", "kvzip:chunk=64"})
    out.emplace_back(spec);
  return out;
}

/// A turn of an empty conversation is a prompt: the same entries are kept, and later tokens see the same.
TEST_F(CompressTest, all_that_was_read_keeps_what_a_prompt_would) {
  const auto text = tokens(150);
  const auto specs = one_shot_specs();
  ASSERT_GT(specs.size(), 20U);
  Session session(model_, {1, Precision::f32, 32, Pack::automatic, calibrated(folder_ / "model.cal", *model_)});
  for (const auto& spec : specs) {
    const auto options = options_of(spec, "40", "f32");
    Cache turn = read(session, text, 40, options);
    ASSERT_EQ(turn.stats().entries_min, 150) << spec;
    session.compress(turn, text);
    Cache prompt = read(session, text, 150, options);
    EXPECT_EQ(turn.kept(), prompt.kept()) << spec;
    EXPECT_EQ(turn.stats().bytes_held, prompt.stats().bytes_held) << spec;
    const auto next = tokens(10, 2);
    EXPECT_LT(worst_row(session.extend(turn, next), session.extend(prompt, next), model_->info().n_vocab), 1e-4)
        << spec;
  }
}

/// Expects that no evicted entry has a higher score than a kept one, up to f32 rounding.
void expect_best(const Positions& kept, const std::vector<double>& score) {
  double worst = 1e9;
  double best = 0;
  for (std::size_t j = 0; j < score.size(); ++j) {
    if (std::binary_search(kept.begin(), kept.end(), static_cast<std::int32_t>(j))) {
      worst = std::min(worst, score[j]);
    } else {
      best = std::max(best, score[j]);
    }
  }
  EXPECT_GE(worst, best * (1 - 1e-4));
}

/// Positions of a lane from `first` on, relative to `first`.
Positions behind(const Positions& positions, int first) {
  Positions out;
  for (const auto p : positions) {
    if (p >= first) out.push_back(p - first);
  }
  return out;
}

void CompressTest::expect_what_the_last_rows_attend_to(int prompt, const std::string& spec, bool shared) const {
  constexpr int kTurn = 90;
  constexpr int kBudget = 40;
  constexpr int kWindow = 8;
  const auto text = tokens(prompt + kTurn);
  Session session(model_, {1, Precision::f32, 32, Pack::automatic, calibrated(folder_ / "model.cal", *model_)});
  Cache cache = read(session, text, prompt, options_of(spec, std::to_string(kBudget), "f32"));
  const auto before = cache.kept();
  session.compress(cache, std::span(text).subspan(z(prompt)));
  const auto after = cache.kept();

  // Each row attends to the kept entries of the prompt and to the turn.
  Network network(path_, 1, 1, prompt + kTurn);
  const auto& h = network.hparams();
  std::vector<std::vector<std::vector<double>>> score(z(h.n_layer),
                                                      std::vector<std::vector<double>>(z(h.layer(0).n_head_kv)));
  for (auto& layer : score) {
    for (auto& head : layer) head.resize(z(kTurn));
  }
  network.attention().set_observer(
      [&](int layer, const DenseAttention::Row& row, int query_head, std::span<const double> weights) {
        if (row.position < prompt + kTurn - kWindow) return;
        const int head = query_head / (h.layer(layer).group());
        double sum = 0;
        for (const auto p : before[layer][head]) sum += p <= row.position ? weights[p] : 0;
        for (int j = prompt; j <= row.position; ++j) score[layer][head][j - prompt] += weights[j] / sum;
      });
  std::vector<DenseAttention::Row> rows;
  for (int i = 0; i < prompt + kTurn; ++i) rows.push_back({0, i});
  network.step(text, rows);

  for (std::size_t layer = 0; layer < after.size(); ++layer) {
    Positions all;
    std::vector<double> worth;
    for (std::size_t head = 0; head < after[layer].size(); ++head) {
      SCOPED_TRACE(spec + " layer " + std::to_string(layer) + " head " + std::to_string(head));
      const auto own = behind(after[layer][head], prompt);
      const auto past = [&](const Positions& p) {
        return Positions(p.begin(), std::lower_bound(p.begin(), p.end(), prompt));
      };
      EXPECT_EQ(past(after[layer][head]), past(before[layer][head])) << "the prompt's entries stay as they are";
      for (int i = kTurn - kWindow; i < kTurn; ++i) EXPECT_TRUE(std::binary_search(own.begin(), own.end(), i));
      auto candidates = score[layer][head];
      candidates.resize(z(kTurn - kWindow));
      for (const auto j : own) {
        if (j < kTurn - kWindow) all.push_back(static_cast<std::int32_t>(worth.size()) + j);
      }
      worth.insert(worth.end(), candidates.begin(), candidates.end());
      if (shared) continue;
      EXPECT_EQ(own.size(), z(kBudget));
      expect_best(own, candidates);
    }
    EXPECT_EQ(all.size(), 2U * (kBudget - kWindow));
    if (shared) expect_best(all, worth);
  }
}

TEST_F(CompressTest, a_turn_keeps_what_its_last_rows_attend_to) {
  expect_what_the_last_rows_attend_to(40, "snapkv:window=8,kernel=1", false);
  expect_what_the_last_rows_attend_to(40, "ada(snapkv:window=8,kernel=1):floor=0", true);
}

/// With a single layer, keys and queries do not depend on the entries kept before, so the reference can ignore these.
TEST_F(CompressOneLayer, a_turn_after_what_is_left_of_a_prompt_keeps_what_its_last_rows_attend_to) {
  expect_what_the_last_rows_attend_to(100, "snapkv:window=8,kernel=1", false);
  expect_what_the_last_rows_attend_to(100, "ada(snapkv:window=8,kernel=1):floor=0", true);
}

/// The remaining entries are consecutive, so their ranks have the same distances as their positions.
TEST_F(CompressTest, ranks_that_are_positions_tell_the_same) {
  const auto text = tokens(140);
  std::vector<std::vector<std::vector<Positions>>> kept;
  for (const std::string positions : {"absolute", "cache"}) {
    Session session(model_, {1, Precision::f32, 32, Pack::automatic, calibrated(folder_ / "model.cal", *model_)});
    Cache cache = read(session, text, 40, options_of("snapkv:window=8,positions=" + positions, "40", "f32"));
    Cache shorter = read(session, std::span(text).first(40), 40, cache.options());
    for (int layer = 0; layer < shorter.impl().layers(); ++layer) {
      auto& lanes = shorter.impl().lanes(layer);
      for (int head = 0; head < 2; ++head) {
        while (lanes.length(head) > 25) {
          int oldest = 0;
          for (int slot = 0; slot < lanes.length(head); ++slot)
            oldest = lanes.position(head, slot) < lanes.position(head, oldest) ? slot : oldest;
          lanes.remove(head, oldest);
        }
        EXPECT_EQ(lanes.is_unrotated(head), positions == "cache");
      }
    }
    session.extend(shorter, std::span(text).subspan(40));
    session.compress(shorter, std::span(text).subspan(40));
    kept.push_back({shorter.kept()});
    EXPECT_EQ(shorter.stats().entries_max, 25 + 40);
    session.compress(cache, std::span(text).subspan(40));
    EXPECT_NE(cache.kept(), shorter.kept());
  }
  EXPECT_EQ(kept[0], kept[1]);
}

/// With a single layer, an entry depends on no earlier entry.
TEST_F(CompressOneLayer, queries_of_a_turns_sinks_count_for_nothing) {
  constexpr int kPrompt = 100;
  constexpr int kTurn = 90;
  constexpr int kSinks = 20;
  Session session(model_, {.threads = 1, .precision = Precision::f32, .chunk = 32});
  const auto kept_with = [&](int first, unsigned seed) {
    auto text = tokens(kPrompt + kTurn);
    const auto others = tokens(kSinks, seed);
    std::ranges::copy(others, text.begin() + kPrompt + first);
    Cache cache = read(session, text, kPrompt, options_of("expected-attention:sinks=20", "40", "f32"));
    session.compress(cache, std::span(text).subspan(kPrompt));
    return cache.kept();
  };
  const auto kept = kept_with(0, 2);
  for (unsigned seed = 3; seed < 7; ++seed) {
    EXPECT_EQ(kept_with(0, seed), kept) << "with other sinks";
    EXPECT_NE(kept_with(kSinks, seed), kept_with(kSinks, 2)) << "with other tokens behind them";
  }
}

/// Such a turn is not read again, even if it has exactly as many tokens as the budget.
TEST_F(CompressTest, a_turn_that_fits_changes_no_bit) {
  const auto text = tokens(164);
  for (const char* spec : {"snapkv:window=8", "ada(h2o:when=prefill)", "h2o", "quest", "full"}) {
    for (const int turn : {50, 64}) {
      Session session(model_, {.threads = 1});
      Cache cache = read(session, std::span(text).first(z(100 + turn)), 100,
                         options_of(spec, spec == std::string("full") ? "" : "64"));
      Cache untouched = cache.clone();
      int asked = 0;
      session.on_stop([&] { return ++asked == 0; });
      session.compress(cache, std::span(text).subspan(100, z(turn)));
      session.on_stop({});
      EXPECT_EQ(asked, 0) << spec << " reads a turn of " << turn;
      EXPECT_EQ(cache.kept(), untouched.kept());
      EXPECT_EQ(session.extend(cache, tokens(5, 3)), session.extend(untouched, tokens(5, 3))) << spec;
    }
  }
}

/// The bounds of a lane's pages must be those of its keys, also after a turn has rearranged them.
TEST_F(CompressTest, pages_are_those_of_all_turns) {
  constexpr int kPage = 5;
  const auto text = tokens(300);
  for (const char* type : {"f32", "q4_0"}) {
    Session session(model_, {.threads = 1});
    Cache cache = read(session, std::span(text).first(200), 100,
                       options_of("quest(ada(snapkv:window=8)):page=5,dense=0", "48", type));
    session.compress(cache, std::span(text).subspan(100, 100));
    session.extend(cache, std::span(text).subspan(200));
    for (int layer = 0; layer < model_->info().n_layer; ++layer) {
      const auto& lanes = cache.impl().lanes(layer);
      const auto dim = z(lanes.shape().head_dim);
      for (int head = 0; head < 2; ++head) {
        ASSERT_GT(lanes.length(head), 100);
        for (int first = 0; first < lanes.length(head); first += kPage) {
          std::vector<float> most(dim, -1e30F);
          std::vector<float> least(dim, 1e30F);
          std::vector<float> key(dim);
          for (int slot = first; slot < std::min(first + kPage, lanes.length(head)); ++slot) {
            lanes.key(head, slot, key);
            for (std::size_t c = 0; c < dim; ++c) most[c] = std::max(most[c], key[c]);
            for (std::size_t c = 0; c < dim; ++c) least[c] = std::min(least[c], key[c]);
          }
          const auto rows = lanes.summaries().rows(head, first / kPage, first / kPage + 1);
          std::vector<float> stored(2 * dim);
          cache::decode_row(rows.type, rows.row(0), stored);
          for (std::size_t c = 0; c < dim; ++c) {  // q4_0's summaries are in f16
            EXPECT_NEAR(stored[c], most[c], 1e-3 * std::abs(most[c]));
            EXPECT_NEAR(stored[dim + c], least[c], 1e-3 * std::abs(least[c]));
          }
        }
      }
    }
  }
}

TEST_F(CompressTest, bytes_follow_the_entries) {
  const auto text = tokens(300);
  const auto& info = model_->info();
  for (const char* spec : {"snapkv:window=8", "ada-snapkv:window=8", "pyramid(ada(knorm))"}) {
    for (const char* type : {"f16", "q8_0", "q4_0"}) {
      Session session(model_, {.threads = 1});
      Cache cache = read(session, std::span(text).first(200), 100, options_of(spec, "50", type));
      const auto grown = cache.stats();
      session.compress(cache, std::span(text).subspan(100, 100));
      const auto held = [&] {
        const auto stats = cache.stats();
        const auto entry = cache::entry_bytes({info.n_head_kv, info.head_dim, KvType::parse(type), 0});
        EXPECT_EQ(static_cast<double>(stats.bytes_held),
                  stats.entries_per_head_mean * static_cast<double>(entry) * info.n_layer * info.n_head_kv);
        return stats;
      };
      EXPECT_LT(held().bytes_held, grown.bytes_held);
      EXPECT_EQ(held().entries_per_head_mean, 100) << spec << " " << type;
      session.extend(cache, std::span(text).subspan(200));
      session.compress(cache, std::span(text).subspan(200));
      EXPECT_EQ(held().entries_per_head_mean, 150) << "three turns, each by the budget";
      EXPECT_EQ(cache.stats().tokens_seen, 300);
    }
  }
}

TEST_F(CompressTest, no_budget_is_too_small_for_a_turn) {
  const auto text = tokens(190);
  Session session(model_, {.threads = 1});
  Cache share = read(session, text, 100, options_of("snapkv:window=8", "10%"));
  session.compress(share, std::span(text).subspan(100));
  EXPECT_EQ(share.stats().entries_max, 10 + 9) << "the window and one entry more";
  Cache more = read(session, text, 100, options_of("snapkv:window=8", "30%"));
  session.compress(more, std::span(text).subspan(100));
  EXPECT_EQ(more.stats().entries_max, 30 + 27);
  EXPECT_THROW(session.compress(more, tokens(191)), UsageError);
}

/// A pass that is stopped at any point changes nothing.
TEST_F(CompressTest, a_pass_that_is_stopped_changes_nothing) {
  const auto text = tokens(190);
  Session session(model_, {.threads = 1});
  Cache cache = read(session, text, 100, options_of("ada-snapkv:window=8", "40"));
  Cache untouched = cache.clone();
  int stopped = 0;
  for (int most = 0;; most = 2 * most + 1) {
    int asked = 0;
    session.on_stop([&] { return asked++ >= most; });
    try {
      session.compress(cache, std::span(text).subspan(100));
      break;
    } catch (const Interrupted&) {
      ++stopped;
      EXPECT_EQ(cache.kept(), untouched.kept());
    }
  }
  EXPECT_GT(stopped, 3);
  session.on_stop({});
  session.compress(untouched, std::span(text).subspan(100));
  EXPECT_EQ(session.extend(cache, tokens(5, 3)), session.extend(untouched, tokens(5, 3)));
}

}  // namespace
}  // namespace winnow::test
