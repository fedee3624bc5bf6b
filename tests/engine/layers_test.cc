// SPDX-License-Identifier: Apache-2.0
// A network whose layers differ in heads, KV heads, head size and RoPE: each goes by its own.
#include "engine/layers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/model_impl.h"
#include "engine/saved.h"
#include "engine/sequence.h"
#include "network/network.h"
#include "support/cache_options.h"
#include "support/rounding.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/methods.h"
#include "winnow/saved.h"
#include "winnow/session.h"

namespace winnow::test {
namespace {

constexpr int kPrompt = 150;
constexpr int kBudget = 72;  // infllm needs 64
constexpr int kSteps = 12;

std::size_t z(int i) { return static_cast<std::size_t>(i); }

class LayersTest : public testing::Test {
 protected:
  LayersTest() {
    write_tiny_gguf(tiny_of_different_layers(), path_);
    model_ = Model::load(path_);
    session_ = std::make_unique<Session>(model_, SessionOptions{2, Precision::f32, 64});
  }

  const model::Hparams& hparams() const { return model_->impl().weights->hparams(); }
  double tolerance() const { return f32_tolerance(model_->info().n_layer); }
  std::vector<Token> tokens(int n, unsigned seed = 1) const { return random_tokens(n, model_->info().n_vocab, seed); }

  Prefilled prefill(const CacheOptions& options) { return session_->prefill(tokens(kPrompt), std::span(&options, 1)); }
  std::vector<float> step(Cache& cache, Token token) {
    std::vector<float> logits(z(model_->info().n_vocab));
    Cache* const one = &cache;
    session_->step(std::span(&one, 1), std::span(&token, 1), logits);
    return logits;
  }
  double distance(std::span<const float> got, std::span<const float> expected) const {
    return worst_row(got, expected, model_->info().n_vocab);
  }

  /// Held against textbook attention over the entries that the cache has when a token's query reads them.
  void expect_steps_over_what_is_kept(const std::string& spec);

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
};

/// A budget of each method that needs one.
CacheOptions with_budget(const std::string& spec) {
  return options_of(spec, Spec::parse(spec).method().needs_budget() ? std::to_string(kBudget) : "", "f32");
}

/// Every method, and wrappers that spread a budget over heads and layers.
std::vector<std::string> all_specs() {
  std::vector<std::string> out = {"ada(snapkv:window=8)", "pyramid(h2o)", "snapkv:positions=cache", "chunk(knorm)"};
  for (const auto& method : list_methods()) out.push_back(method.name);
  return out;
}

/// Whether what stays is what it was, and all of it is read. cam merges values while decoding, too.
bool only_evicts(const policy::Method& method) {
  return method.name != "cam" && !method.lanes.merge && !method.decoding.attend && !method.retrieves &&
         method.positions == policy::Positions::absolute;
}

TEST_F(LayersTest, no_two_layers_are_alike) {
  ASSERT_EQ(hparams().kinds.size(), 4U);
  EXPECT_EQ(hparams().layer(1).n_head, 4);
  EXPECT_EQ(hparams().layer(1).n_head_kv, 4);
  EXPECT_EQ(hparams().layer(2).head_dim, 96);
  EXPECT_EQ(hparams().layer(2).rope.rotated_dims(), 48);
  EXPECT_NEAR(hparams().layer(2).rope.frequency.back(), std::pow(500.0, -46.0 / 48), 1e-6);
  EXPECT_EQ(hparams().layer(3).rope_base, 1e6F);
}

TEST_F(LayersTest, reading_and_decoding_are_those_of_the_network_in_double_precision) {
  const auto text = tokens(kPrompt);
  Network network(path_, 1, 1, kPrompt + kSteps);
  const auto expected = network.prefill(text, 64);
  auto got = prefill(options_of("full", "", "f32"));
  const auto last = std::span(expected).last(z(model_->info().n_vocab));
  EXPECT_LT(distance(got.logits, last), tolerance());
  int position = kPrompt;
  for (const Token token : tokens(kSteps, 2)) {
    const auto want = network.step(std::span(&token, 1), {{0, position++}});
    ASSERT_LT(distance(step(got.caches.front(), token), want), tolerance());
  }
  EXPECT_LT(network.gain(), kLargestGain);
}

void LayersTest::expect_steps_over_what_is_kept(const std::string& spec) {
  auto prefilled = prefill(with_budget(spec));
  Cache& cache = prefilled.caches.front();
  const bool evicts_first = static_cast<bool>(cache.impl().method().decoding.evict);
  Network network(path_, 1, 1, kPrompt + kSteps);
  network.prefill(tokens(kPrompt), 64);
  auto kept = cache.kept();
  network.attention().set_sees([&](int layer, int kv_head, int query, int key) {
    const auto& of_head = kept[layer][kv_head];
    return query == key || std::binary_search(of_head.begin(), of_head.end(), key);
  });
  int position = kPrompt;
  for (const Token token : tokens(kSteps, 2)) {
    if (!evicts_first) kept = cache.kept();
    const auto got = step(cache, token);
    if (evicts_first) kept = cache.kept();
    ASSERT_LT(distance(got, network.step(std::span(&token, 1), {{0, position++}})), tolerance()) << spec;
  }
}

TEST_F(LayersTest, steps_read_what_each_method_has_kept) {
  int methods = 0;
  for (const auto& spec : all_specs()) {
    if (!only_evicts(Spec::parse(spec).method())) continue;
    expect_steps_over_what_is_kept(spec);
    ++methods;
  }
  EXPECT_GT(methods, 15);
}

TEST_F(LayersTest, a_prompt_keeps_what_its_last_rows_attend_to_in_every_head) {
  constexpr int kWindow = 8;
  std::vector<std::vector<std::vector<double>>> score(z(hparams().n_layer));
  for (int layer = 0; layer < hparams().n_layer; ++layer)
    score[layer].assign(z(hparams().layer(layer).n_head_kv), std::vector<double>(z(kPrompt - kWindow)));
  Network network(path_, 1, 1, kPrompt);
  network.attention().set_watcher(
      [&](int layer, const DenseAttention::Row& row, int head, std::span<const double> weights) {
        auto& of_head = score[layer][head / hparams().layer(layer).group()];
        for (std::size_t j = 0; row.position >= kPrompt - kWindow && j < of_head.size(); ++j) of_head[j] += weights[j];
      });
  network.prefill(tokens(kPrompt), 64);
  const auto kept = prefill(with_budget("snapkv:window=8,kernel=1")).caches.front().kept();
  for (std::size_t layer = 0; layer < score.size(); ++layer) {
    ASSERT_EQ(kept[layer].size(), score[layer].size());
    for (std::size_t head = 0; head < score[layer].size(); ++head) {
      ASSERT_EQ(kept[layer][head].size(), z(kBudget));
      double worst = 1e9;
      double best_left = 0;
      for (int j = 0; j < kPrompt - kWindow; ++j) {
        const bool stays = std::binary_search(kept[layer][head].begin(), kept[layer][head].end(), j);
        const double x = score[layer][head][j];
        worst = stays ? std::min(worst, x) : worst;
        best_left = stays ? best_left : std::max(best_left, x);
      }
      EXPECT_GE(worst, best_left * (1 - kLargestGain * tolerance())) << "layer " << layer << ", head " << head;
    }
  }
}

TEST_F(LayersTest, what_is_saved_goes_on_as_if_it_had_not_been) {
  const std::string file = folder_ / "saved.kv";
  for (const auto& spec : all_specs()) {
    SCOPED_TRACE(spec);
    auto prefilled = prefill(with_budget(spec));
    Cache& cache = prefilled.caches.front();
    for (const Token token : tokens(kSteps, 2)) step(cache, token);
    Transcript transcript;
    transcript.tokens = tokens(cache.stats().tokens_seen);
    session_->save(file, cache, prefilled.logits, transcript);
    auto restored = session_->load(file);
    EXPECT_EQ(restored.cache.kept(), cache.kept());
    for (const Token token : tokens(kSteps, 3)) ASSERT_EQ(step(restored.cache, token), step(cache, token));
    EXPECT_EQ(restored.cache.stats().bytes_held, cache.stats().bytes_held);
    EXPECT_EQ(describe_saved(file).damage, "");
  }
}

/// What differs between layers is what tells this model's files from those of another with the same first layer.
TEST_F(LayersTest, a_file_says_the_heads_of_each_layer) {
  const auto identity = engine::identity_of(hparams(), 1);
  ASSERT_EQ(identity.heads.size(), 4U);
  EXPECT_EQ(identity.of_layer(2).head_dim, 96);
  TinyModel equal;
  write_tiny_gguf(equal, folder_ / "equal.gguf");
  const auto other = Model::load(folder_ / "equal.gguf");
  EXPECT_EQ(engine::identity_of(other->impl().weights->hparams(), 1).heads.size(), 1U);
}

TEST_F(LayersTest, a_turn_that_is_compressed_keeps_what_a_prompt_would) {
  const auto text = tokens(kPrompt);
  for (const char* spec : {"snapkv:window=8", "ada(snapkv:window=8):floor=0", "knorm",
                           "snapkv:window=8,positions=cache", "expected-attention", "pyramidkv:window=8"}) {
    const auto options = with_budget(spec);
    Cache turn = std::move(session_->prefill(std::span(text).first(40), std::span(&options, 1)).caches.front());
    session_->extend(turn, std::span(text).subspan(40));
    session_->compress(turn, text);
    EXPECT_EQ(turn.kept(), prefill(options).caches.front().kept()) << spec;
  }
}

TEST_F(LayersTest, bytes_are_those_of_each_layer_s_entries) {
  std::size_t entry = 0;  // in each lane of each layer: f32 keys and values, and a position
  for (const auto& layer : model_->info().layers) entry += z(layer.n_head_kv) * (z(layer.head_dim) * 8 + 4);
  const auto stats = prefill(options_of("knorm", "64KiB", "f32")).caches.front().stats();
  EXPECT_LE(stats.bytes_held, 65536U);
  EXPECT_GT(stats.bytes_held + entry, 65536U);
  EXPECT_EQ(stats.entries_min, stats.entries_max);
  EXPECT_EQ(stats.bytes_full, z(kPrompt) * model_->info().kv_bytes_per_token);
}

TEST_F(LayersTest, the_bytes_that_are_foretold_suffice) {
  for (const char* spec : {"full", "snapkv", "kvzip"}) {
    const auto options = with_budget(spec);
    Session session(model_, {1, Precision::f32, 64});
    const auto before = session.memory().held;
    const auto foretold = session.prefill_bytes(kPrompt, std::span(&options, 1));
    session.prefill(tokens(kPrompt), std::span(&options, 1));
    EXPECT_LT(session.memory().peak - before, foretold + (4U << 20)) << spec;  // work space
  }
}

}  // namespace
}  // namespace winnow::test
