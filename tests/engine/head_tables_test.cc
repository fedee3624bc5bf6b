// SPDX-License-Identifier: Apache-2.0
// A method that gives each head of each layer a budget of its own before anything has been read: what it keeps after a
// prompt and while decoding, in files, and in the bytes that are foretold.
#include "support/head_tables.h"

#include <gtest/gtest.h>

#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/sequence.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/policy/registry.h"
#include "winnow/session.h"

namespace winnow::test {
namespace {

constexpr int kPrompt = 150;
constexpr int kBudget = 40;
constexpr int kSteps = 12;

class HeadTables : public testing::Test {
 protected:
  static void SetUpTestSuite() { policy::add_method(head_tables()); }

  HeadTables() {
    write_tiny_gguf(tiny_of_different_layers(), path_);
    model_ = Model::load(path_);
    session_ = std::make_unique<Session>(model_, SessionOptions{2, Precision::f32, 64});
  }

  const model::Hparams& hparams() const { return model_->impl().weights->hparams(); }
  std::vector<Token> tokens(int n, unsigned seed = 1) const { return random_tokens(n, model_->info().n_vocab, seed); }
  static CacheOptions options(const char* spec) { return options_of(spec, std::to_string(kBudget), "f32"); }

  Prefilled prefill(const CacheOptions& options) { return session_->prefill(tokens(kPrompt), std::span(&options, 1)); }
  void decode(Cache& cache) {
    std::vector<float> logits(static_cast<std::size_t>(model_->info().n_vocab));
    Cache* const one = &cache;
    for (const Token token : tokens(kSteps, 2)) session_->step(std::span(&one, 1), std::span(&token, 1), logits);
  }

  /// What the table says, `more` entries later.
  std::vector<std::vector<int>> table(int more = 0) const {
    auto out = table_of(kBudget, engine::prompts_of(hparams(), kPrompt));
    for (auto& layer : out) {
      for (int& x : layer) x += more;
    }
    return out;
  }
  static std::vector<std::vector<int>> counts(const Cache& cache) {
    std::vector<std::vector<int>> out;
    for (const auto& layer : cache.kept()) {
      auto& of_layer = out.emplace_back();
      for (const auto& head : layer) of_layer.push_back(static_cast<int>(head.size()));
    }
    return out;
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
};

TEST_F(HeadTables, a_prompt_is_cut_to_the_table_and_lanes_grow_from_there) {
  auto prefilled = prefill(options("head-tables"));
  Cache& cache = prefilled.caches.front();
  EXPECT_EQ(counts(cache), table());
  decode(cache);
  EXPECT_EQ(counts(cache), table(kSteps));
}

TEST_F(HeadTables, lanes_that_evict_at_every_step_stay_at_the_table) {
  auto prefilled = prefill(options("head-tables:when=step"));
  Cache& cache = prefilled.caches.front();
  EXPECT_EQ(cache.impl().limits(), table());
  decode(cache);
  EXPECT_EQ(counts(cache), table());
}

TEST_F(HeadTables, a_saved_cache_goes_on_with_its_table) {
  auto prefilled = prefill(options("head-tables:when=step"));
  Transcript transcript;
  transcript.tokens = tokens(kPrompt);
  const std::string file = folder_ / "saved.kv";
  session_->save(file, prefilled.caches.front(), prefilled.logits, transcript);
  auto restored = session_->load(file);
  EXPECT_EQ(restored.cache.impl().limits(), table());
  decode(restored.cache);
  EXPECT_EQ(counts(restored.cache), table());
}

TEST_F(HeadTables, a_turn_that_is_compressed_is_cut_to_the_table) {
  const auto spec = options("head-tables");
  const auto text = tokens(kPrompt);
  Cache turn = std::move(session_->prefill(std::span(text).first(30), std::span(&spec, 1)).caches.front());
  session_->extend(turn, std::span(text).subspan(30));
  session_->compress(turn, text);
  EXPECT_EQ(counts(turn), table());
}

/// Layers differ in the bytes of an entry, so what the lanes take follows from the table, not from the mean.
TEST_F(HeadTables, the_bytes_that_are_foretold_are_those_of_the_table) {
  const auto foretold = [&](const char* spec) {
    const auto cache = options(spec);
    return static_cast<double>(session_->prefill_bytes(kPrompt, std::span(&cache, 1)));
  };
  const auto held = [&](const char* spec) {
    return static_cast<double>(prefill(options(spec)).caches.front().stats().bytes_held);
  };
  const auto numbers = table();
  double more = 0;  // than as many entries of each head: f32 keys and values, and a position
  for (int layer = 0; layer < hparams().n_layer; ++layer) {
    for (const int x : numbers[layer]) more += (x - kBudget) * (hparams().layer(layer).head_dim * 8 + 4);
  }
  ASSERT_NE(more, 0);
  EXPECT_DOUBLE_EQ(held("head-tables") - held("random"), more);
  EXPECT_DOUBLE_EQ(foretold("head-tables") - foretold("random"), more);
}

}  // namespace
}  // namespace winnow::test
