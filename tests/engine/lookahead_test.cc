// SPDX-License-Identifier: Apache-2.0
// Drafts: their tokens, compared with the session's own steps over the drafter's cache, and the attention of their
// rows, compared with a network with textbook attention.
#include <gtest/gtest.h>

#include <algorithm>

#include "network/network.h"
#include "support/cache_options.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/session.h"

namespace winnow::test {
namespace {

using Kept = std::vector<std::vector<std::vector<std::int32_t>>>;
/// [layer][KV head][token]
using Scores = std::vector<std::vector<std::vector<double>>>;

constexpr int kPrompt = 150;
constexpr int kBudget = 40;

struct Lookahead {
  std::string drafter = "snapkv:window=8";
  int draft = 8;
  int window = 8;
  int kernel = 7;
  std::string rows = "sum";

  std::string spec() const {
    return "lookahead(" + drafter + "):draft=" + std::to_string(draft) + ",window=" + std::to_string(window) +
           ",kernel=" + std::to_string(kernel) + ",rows=" + rows;
  }
};

class LookaheadTest : public testing::Test {
 protected:
  LookaheadTest() {
    TinyModel tiny;
    tiny.n_layer = 3;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    write_tiny_gguf(tiny, path_);
    model_ = Model::load(path_);
  }

  std::vector<Token> tokens(int n, unsigned seed = 1) const { return random_tokens(n, model_->info().n_vocab, seed); }

  static CacheOptions kept_by(const std::string& spec) { return options_of(spec, std::to_string(kBudget), "f32"); }

  std::vector<Token> draft_of(const std::vector<Token>& text, const Lookahead& method) const {
    const auto drafter = kept_by(method.drafter);
    Session session(model_, {1, Precision::f32, 32});
    auto read = session.prefill(text, std::span(&drafter, 1));
    std::vector<Token> out;
    while (static_cast<int>(out.size()) < method.draft) {
      const auto best = std::max_element(read.logits.begin(), read.logits.end()) - read.logits.begin();
      if (!out.empty() && model_->vocab().ends(static_cast<Token>(best))) break;
      out.push_back(static_cast<Token>(best));
      Cache* const cache = &read.caches.front();
      session.step(std::span(&cache, 1), std::span(&out.back(), 1), read.logits);
    }
    return out;
  }

  /// Pooled attention from the last rows of the text and from those of the draft. The last entries have no score.
  Scores reference(const std::vector<Token>& text, const std::vector<Token>& draft, const Lookahead& method) const {
    const int n = static_cast<int>(text.size());
    auto all = text;
    all.insert(all.end(), draft.begin(), draft.end());
    Network network(path_, 1, 1, static_cast<int>(all.size()));
    const auto& h = network.hparams();
    const int scored = n - method.window;
    Scores out(h.n_layer, std::vector<std::vector<double>>(h.layer(0).n_head_kv, std::vector<double>(scored)));
    std::vector<DenseAttention::Row> rows;
    for (int i = 0; i < static_cast<int>(all.size()); ++i) rows.push_back({0, i});
    network.attention().set_observer(
        [&](int layer, const DenseAttention::Row& row, int head, std::span<const double> weights) {
          auto& score = out[layer][head / h.layer(layer).group()];
          for (int j = 0; row.position >= scored && j < scored; ++j)
            score[j] = method.rows == "sum" ? score[j] + weights[j] : std::max(score[j], weights[j]);
        });
    network.step(all, rows);
    for (auto& layer : out) {
      for (auto& score : layer) score = pooled(score, method.kernel);
    }
    return out;
  }

  static std::vector<double> pooled(const std::vector<double>& score, int kernel) {
    std::vector<double> out;
    const int n = static_cast<int>(score.size());
    for (int j = 0; j < n; ++j)
      out.push_back(*std::max_element(score.begin() + std::max(0, j - kernel / 2),
                                      score.begin() + std::min(n, j + kernel / 2 + 1)));
    return out;
  }

  Kept kept(const std::vector<Token>& text, std::size_t cut, const std::string& spec, int threads = 2) const {
    const auto options = kept_by(spec);
    Session session(model_, {threads, Precision::f32, 32});
    const std::vector<std::vector<Token>> question = {{text.begin() + static_cast<std::ptrdiff_t>(cut), text.end()}};
    return session.prefill(std::span(text).first(cut), question, std::span(&options, 1)).front().caches.front().kept();
  }

  /// Expects that no evicted entry has a higher score than a kept one, up to f32 rounding, and that the last entries
  /// are kept.
  static void expect_best(const Kept& sets, const Scores& scores) {
    for (std::size_t layer = 0; layer < sets.size(); ++layer) {
      for (std::size_t head = 0; head < sets[layer].size(); ++head) {
        const auto& set = sets[layer][head];
        const auto& score = scores[layer][head];
        ASSERT_EQ(set.size(), static_cast<std::size_t>(kBudget));
        double worst = 1e9;
        double best = 0;
        for (int j = 0; j < static_cast<int>(score.size()); ++j) {
          if (std::binary_search(set.begin(), set.end(), j)) {
            worst = std::min(worst, score[j]);
          } else {
            best = std::max(best, score[j]);
          }
        }
        EXPECT_GE(worst, best * (1 - 1e-4)) << "layer " << layer << " head " << head;
        for (int j = static_cast<int>(score.size()); j < kPrompt; ++j)
          EXPECT_TRUE(std::binary_search(set.begin(), set.end(), j)) << j;
      }
    }
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::shared_ptr<const Model> model_;
};

TEST_F(LookaheadTest, keeps_what_a_draft_and_the_last_queries_look_at) {
  const auto text = tokens(kPrompt);
  for (const auto& method : {Lookahead{}, Lookahead{"streaming-llm", 3, 5, 1, "max"}, Lookahead{"h2o", 1, 8, 5, "sum"},
                             Lookahead{"full", 20, 1, 7, "sum"}, Lookahead{"kvzip:chunk=64", 8, 8, 7, "max"}}) {
    SCOPED_TRACE(method.spec());
    const auto draft = draft_of(text, method);
    const auto scores = reference(text, draft, method);
    for (const std::size_t cut : {std::size_t{kPrompt}, std::size_t{97}}) {
      expect_best(kept(text, cut, method.spec()), scores);
    }
  }
}

TEST_F(LookaheadTest, what_the_drafter_keeps_decides_the_draft) {
  const auto text = tokens(kPrompt);
  const Lookahead full{"full"};
  const Lookahead few{"streaming-llm"};
  EXPECT_EQ(draft_of(text, full).front(), draft_of(text, few).front()) << "the first token is that of the prompt";
  ASSERT_NE(draft_of(text, full), draft_of(text, few));
  EXPECT_NE(kept(text, kPrompt, full.spec()), kept(text, kPrompt, few.spec()));
}

TEST_F(LookaheadTest, a_draft_ends_where_the_text_ends) {
  const Lookahead method{.draft = 30};
  for (unsigned seed = 1; seed < 2000; ++seed) {
    const auto text = tokens(kPrompt, seed);
    const auto draft = draft_of(text, method);
    if (draft.size() == 30) continue;
    expect_best(kept(text, kPrompt, method.spec()), reference(text, draft, method));
    return;
  }
  FAIL() << "no draft has ended";
}

/// Several caches share a pass, each with its own draft.
TEST_F(LookaheadTest, drafts_beside_others_change_no_bit) {
  const auto text = tokens(110);
  const std::vector<std::vector<Token>> questions = {tokens(40, 3), {}, tokens(7, 2)};
  std::vector<CacheOptions> all;
  for (const char* spec : {"full", "lookahead(snapkv:window=8)", "kvzip:chunk=32", "ada(lookahead(snapkv:window=8))",
                           "dapq", "lookahead(h2o):draft=3", "chunk(kvzip:rank=model)"})
    all.push_back(options_of(spec, "40"));
  all.push_back(options_of("lookahead(snapkv:window=8)", "60"));
  all.push_back(options_of("lookahead(snapkv:window=8)", "130"));  // only the first of three prompts exceeds the budget
  Session session(model_, {2, Precision::automatic, 64});
  auto together = session.prefill(text, questions, all);
  for (std::size_t c = 0; c < all.size(); ++c) {
    auto alone = session.prefill(text, questions, std::span(all).subspan(c, 1));
    for (std::size_t i = 0; i < questions.size(); ++i) {
      SCOPED_TRACE(all[c].spec.print() + " " + std::to_string(i));
      EXPECT_EQ(alone[i].logits, together[i].logits);
      EXPECT_EQ(alone[i].caches[0].kept(), together[i].caches[c].kept());
      EXPECT_EQ(alone[i].caches[0].stats().bytes_held, together[i].caches[c].stats().bytes_held);
      EXPECT_EQ(together[i].caches[c].options().spec, all[c].spec);
      for (const Token token : tokens(5, 5))
        EXPECT_EQ(session.extend(alone[i].caches[0], std::span(&token, 1)),
                  session.extend(together[i].caches[c], std::span(&token, 1)));
    }
  }
}

TEST_F(LookaheadTest, the_number_of_threads_changes_nothing) {
  const auto text = tokens(kPrompt, 4);
  for (const char* spec : {"lookahead(snapkv)", "chunk(lookahead(ada(h2o)))", "dapq:queries=9", "kvzip:rank=model"})
    EXPECT_EQ(kept(text, 97, spec, 1), kept(text, 97, spec, 2)) << spec;
}

TEST_F(LookaheadTest, a_prompt_that_fits_is_read_once) {
  const auto text = tokens(kPrompt);
  Session session(model_, {2, Precision::f32, 32});
  const auto rises = [&](const char* budget) {
    const auto options = options_of("lookahead(snapkv)", budget, "f32");
    std::vector<double> shares;
    session.on_progress([&](double done) { shares.push_back(done); });
    const auto read = session.prefill(text, std::span(&options, 1));
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
    EXPECT_EQ(shares.back(), 1);
    EXPECT_EQ(read.caches[0].stats().tokens_seen, kPrompt);
    return shares.size();
  };
  const auto once = rises("150");
  const auto twice = rises("40");
  EXPECT_GE(twice, 2 * once);
}

/// No draft is made after a turn that has ended, because the next question is unknown.
TEST_F(LookaheadTest, a_turn_is_compressed_by_its_last_queries_alone) {
  const auto text = tokens(kPrompt);
  std::vector<Kept> sets;
  for (const char* spec : {"lookahead(snapkv:window=8)", "snapkv:window=8"}) {
    const auto options = kept_by(spec);
    Session session(model_, {1, Precision::f32, 32});
    auto read = session.prefill(std::span(text).first(30), std::span(&options, 1));
    session.extend(read.caches[0], std::span(text).subspan(30));
    session.compress(read.caches[0], std::span(text).subspan(30));
    sets.push_back(read.caches[0].kept());
  }
  EXPECT_EQ(sets[0], sets[1]);
}

}  // namespace
}  // namespace winnow::test
