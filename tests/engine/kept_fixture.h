// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/model_impl.h"
#include "engine/sequence.h"
#include "network/network.h"
#include "policy/observers/query_rows.h"
#include "support/cache_options.h"
#include "support/rounding.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/policy/method.h"
#include "winnow/policy/registry.h"
#include "winnow/saved.h"
#include "winnow/session.h"

namespace winnow::test {

inline std::size_t z(int i) { return static_cast<std::size_t>(i); }

/// Cache options for a spec, with a budget if its method needs one.
inline CacheOptions with_budget(const std::string& spec, int budget = 72) {  // infllm needs 64
  return options_of(spec, Spec::parse(spec).method().needs_budget() ? std::to_string(budget) : "", "f32");
}

/// All methods except those that tests add, and wrappers that spread a budget over heads and layers.
inline std::vector<std::string> all_specs() {
  std::vector<std::string> out = {"ada(snapkv:window=8)",
                                  "pyramid(h2o)",
                                  "snapkv:positions=cache",
                                  "chunk(knorm)",
                                  "span(h2o)",
                                  "ada(span(snapkv:window=8))",
                                  "snapkv:window=question",
                                  "critical(ada(snapkv:window=8))",
                                  "refit(ada(snapkv:window=8))",
                                  "refit(ems)",
                                  "ada(h2o):over=model",
                                  "kvzap:when=step",
                                  "ada(triattention:buffer=5)",
                                  "r-kv:buffer=8",
                                  "decoding(refit(ada(snapkv:window=8)))"};
  for (const auto& preset : policy::built_in().presets) out.push_back(preset.name);
  return out;
}

/// True if kept entries are unchanged and all of them are read. cam also merges values while decoding.
inline bool only_evicts(const policy::Method& method) {
  return method.name != "cam" && !method.lanes.merge && !method.decoding.attend && !method.retrieves &&
         method.positions == policy::Positions::absolute;
}

/// Query rows recorded for a method, in order.
struct Recorded {
  std::vector<int> rows;
  std::vector<float> queries;  ///< [row][H_q][d]
  std::vector<float> outputs;
};

/// Rows that the method `recording` has seen, by the layer whose keys they read.
inline std::map<int, Recorded>& recorded() {
  static std::map<int, Recorded> all;
  return all;
}

inline const std::vector<std::int32_t>& recorded_rows() {
  static const std::vector<std::int32_t> rows{0, 3, 63, 64, 100, 149};
  return rows;
}

inline policy::Scores record(const policy::LayerView& view, const attention::QueryRows& rows) {
  auto& to = recorded()[view.number];
  for (int r = 0; r < rows.size(); ++r) {
    to.rows.push_back(rows.row(r));
    for (int head = 0; head < view.shape.query_heads; ++head) {
      to.queries.insert(to.queries.end(), rows.query(r, head).begin(), rows.query(r, head).end());
      to.outputs.insert(to.outputs.end(), rows.output(r, head).begin(), rows.output(r, head).end());
    }
  }
  return {view.shape.kv_heads, view.tokens()};
}

/// Registers the method `recording`.
inline void add_recording() {
  static const bool added = [] {
    policy::add_method(
        {.name = "recording", .summary = "", .paper = "", .options = {}, .build = [](const auto&) {
           policy::Method method;
           const auto some = method.observers.add(
               policy::observe_rows(
                   "some",
                   [](const policy::LayerPrompt&) {
                     return attention::QueryRowSet{attention::QueryRowSet::Kind::listed, 0, recorded_rows()};
                   }),
               {.ranking = true});
           method.selection.always_kept = {"nothing",
                                           [](const policy::LayerPrompt&, int) { return policy::AlwaysKept{}; }};
           method.selection.least = {"nothing", [](const policy::LayerPrompt&) { return 0; }};
           method.selection.score = {"none", [some](const policy::LayerView& view, const policy::AlwaysKept&) {
                                       return record(view, view[some]);
                                     }};
           method.schedule = policy::Schedule::once;
           return method;
         }});
    return true;
  }();
  EXPECT_TRUE(added);
}

/// A small network and a session in f32, whose caches are compared with the network with textbook attention.
class KeptTest : public testing::Test {
 protected:
  static constexpr int kPrompt = 150;
  static constexpr int kSteps = 12;

  explicit KeptTest(const TinyModel& tiny) : tiny_(tiny) {
    write_tiny_gguf(tiny, path_);
    model_ = Model::load(path_);
    session_ = std::make_unique<Session>(
        model_, SessionOptions{1, Precision::f32, 64, Pack::automatic, calibrated(folder_ / "model.cal", *model_)});
  }

  const model::Hparams& hparams() const { return model_->impl().weights->hparams(); }
  bool shares_keys() const { return hparams().n_kv_layer < hparams().n_layer; }
  double tolerance() const { return tolerance_of(tiny_); }
  std::vector<Token> tokens(int n, unsigned seed = 1) const { return random_tokens(n, model_->info().n_vocab, seed); }

  Prefilled prefill(const CacheOptions& options, std::span<const Token> text) {
    return session_->prefill(text, std::span(&options, 1));
  }
  Prefilled prefill(const CacheOptions& options) { return prefill(options, tokens(kPrompt)); }
  std::vector<float> step(Cache& cache, Token token) {
    std::vector<float> logits(z(model_->info().n_vocab));
    Cache* const one = &cache;
    session_->step(std::span(&one, 1), std::span(&token, 1), logits);
    return logits;
  }
  double distance(std::span<const float> got, std::span<const float> expected) const {
    return worst_row(got, expected, model_->info().n_vocab);
  }

  void expect_the_network_s_logits() {
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
    EXPECT_LT(network.gain(), largest_gain(tiny_));
  }

  /// The scores are sums of the last rows of textbook attention in each head.
  void expect_that_a_prompt_keeps_what_its_last_rows_attend_to() {
    constexpr int kWindow = 8;
    std::vector<std::vector<std::vector<double>>> score(z(hparams().n_layer));
    score.resize(z(hparams().n_kv_layer));
    for (int layer = 0; layer < hparams().n_kv_layer; ++layer)
      score[layer].assign(z(hparams().layer(layer).n_head_kv), std::vector<double>(z(kPrompt - kWindow)));
    Network network(path_, 1, 1, kPrompt);
    network.attention().set_observer(
        [&](int layer, const DenseAttention::Row& row, int head, std::span<const double> weights) {
          auto& of_head = score[hparams().kv_layer(layer)][head / hparams().layer(layer).group()];
          for (std::size_t j = 0; row.position >= kPrompt - kWindow && j < of_head.size(); ++j)
            of_head[j] += weights[j];
        });
    network.prefill(tokens(kPrompt), 64);
    const auto kept = prefill(with_budget("snapkv:window=8,kernel=1")).caches.front().kept();
    for (std::size_t layer = 0; layer < score.size(); ++layer) {
      ASSERT_EQ(kept[layer].size(), score[layer].size());
      for (std::size_t head = 0; head < score[layer].size(); ++head) {
        ASSERT_EQ(kept[layer][head].size(), z(72));
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

  /// The network with textbook attention, which has read the prompt. Steps after the prompt may be repeated.
  Network& textbook() {
    if (!textbook_) {
      textbook_ = std::make_unique<Network>(path_, 1, 1, kPrompt + kSteps);
      textbook_->prefill(tokens(kPrompt), 64);
    }
    return *textbook_;
  }

  /// Compares steps with textbook attention over the entries that the cache holds when a token's query reads them.
  void expect_steps_over_what_is_kept(const std::string& spec) {
    auto prefilled = prefill(with_budget(spec));
    Cache& cache = prefilled.caches.front();
    const bool evicts_first = static_cast<bool>(cache.impl().method().decoding.evict);
    auto kept = cache.kept();
    textbook().attention().set_sees([&](int layer, int kv_head, int query, int key) {
      const auto& of_head = kept[hparams().kv_layer(layer)][kv_head];
      return query == key || std::binary_search(of_head.begin(), of_head.end(), key);
    });
    int position = kPrompt;
    for (const Token token : tokens(kSteps, 2)) {
      if (!evicts_first) kept = cache.kept();
      const auto got = step(cache, token);
      if (evicts_first) kept = cache.kept();
      ASSERT_LT(distance(got, textbook().step(std::span(&token, 1), {{0, position++}})), tolerance()) << spec;
    }
  }

  /// Does so for all methods that only evict.
  void expect_steps_over_what_each_method_has_kept() {
    int methods = 0;
    for (const auto& spec : all_specs()) {
      if (!only_evicts(Spec::parse(spec).method())) continue;
      expect_steps_over_what_is_kept(spec);
      ++methods;
    }
    EXPECT_GT(methods, 15);
  }

  /// Saves each cache after `steps` steps, and compares it with the loaded one for as many steps. `also` gets both
  /// caches and the file's description.
  using AlsoOfSaved = std::function<void(Cache& cache, Cache& restored, const SavedInfo& info)>;
  void expect_that_what_is_saved_goes_on(
      int steps = kSteps, const AlsoOfSaved& also = [](Cache&, Cache&, const SavedInfo&) {}) {
    const std::string file = folder_ / "saved.kv";
    for (const auto& spec : all_specs()) {
      SCOPED_TRACE(spec);
      if (Spec::parse(spec).method().retrieves && shares_keys()) continue;
      auto prefilled = prefill(with_budget(spec));
      Cache& cache = prefilled.caches.front();
      for (const Token token : tokens(steps, 2)) step(cache, token);
      Transcript transcript;
      transcript.tokens = tokens(cache.stats().tokens_seen);
      session_->save(file, cache, prefilled.logits, transcript);
      auto restored = session_->load(file);
      EXPECT_EQ(restored.cache.kept(), cache.kept());
      const auto info = describe_saved(file);
      EXPECT_EQ(info.damage, "");
      for (const Token token : tokens(steps, 3)) ASSERT_EQ(step(restored.cache, token), step(cache, token));
      EXPECT_EQ(restored.cache.stats().bytes_held, cache.stats().bytes_held);
      also(cache, restored.cache, info);
    }
  }

  using Kept = std::vector<std::vector<std::vector<std::int32_t>>>;
  /// Entries of `a` that `b` lacks, over all layers and heads.
  static int exchanged(const Kept& a, const Kept& b) {
    int out = 0;
    for (std::size_t layer = 0; layer < a.size(); ++layer) {
      for (std::size_t head = 0; head < a[layer].size(); ++head) {
        std::vector<std::int32_t> missing;
        std::ranges::set_difference(a[layer][head], b[layer][head], std::back_inserter(missing));
        out += static_cast<int>(missing.size());
      }
    }
    return out;
  }

  /// A turn's attention is added up in a different order from a prompt's, which changes keys by about 1e-6. If GELU is
  /// ggml's table over f16 values (see tolerance_of()), the difference is up to 3e-4: two entries may change places.
  void expect_that_compressed_turns_keep_what_a_prompt_would() {
    const bool has_table = tiny_architecture(tiny_.arch).gelu;
    const auto text = tokens(kPrompt);
    for (const char* spec :
         {"snapkv:window=8", "ada(snapkv:window=8):floor=0", "knorm", "snapkv:window=8,positions=cache",
          "expected-attention", "pyramidkv:window=8", "snapkv:window=8,rows=max", "snapkv:window=8,weights=keys",
          "span(snapkv:window=8)", "critical(snapkv:window=8)", "lagkv", "kvzip:normalize=plus", "compactor"}) {
      const auto options = with_budget(spec);
      Cache turn = std::move(session_->prefill(std::span(text).first(40), std::span(&options, 1)).caches.front());
      session_->extend(turn, std::span(text).subspan(40));
      session_->compress(turn, text);
      const auto kept = turn.kept();
      const auto expected = prefill(options).caches.front().kept();
      if (has_table) {
        EXPECT_LE(exchanged(kept, expected), 1) << spec;
        EXPECT_LE(exchanged(expected, kept), 1) << spec;
      } else {
        EXPECT_EQ(kept, expected) << spec;
      }
    }
  }

  /// Compares recorded rows of all layers that read the same keys, in layer order.
  void expect_that_recorded_rows_are_the_network_s() {
    add_recording();
    recorded().clear();
    prefill(with_budget("recording"));
    std::map<std::pair<int, int>, Recorded> expected;  // [layer whose keys are read, layer that reads them]
    Network network(path_, 1, 1, kPrompt);
    std::vector<float> query;  // queries of all heads
    network.attention().set_reader([&](int, int, const DenseAttention::Reading& reading) {
      query.assign(reading.queries.begin(), reading.queries.end());
    });
    network.attention().set_observer(
        [&](int layer, const DenseAttention::Row& row, int head, std::span<const double> weights) {
          const auto& spec = hparams().layer(layer);
          if (spec.window > 0 || !std::ranges::binary_search(recorded_rows(), row.position)) return;
          auto& to = expected[{hparams().kv_layer(layer), layer}];
          if (head == 0) to.rows.push_back(row.position);
          const auto dim = z(spec.head_dim);
          to.queries.insert(to.queries.end(), &query[z(head) * dim], &query[z(head) * dim] + dim);
          std::vector<double> output(dim);
          for (std::size_t j = 0; j < weights.size(); ++j) {
            const auto value =
                network.attention().value(hparams().kv_layer(layer), static_cast<int>(j), head / spec.group());
            for (std::size_t c = 0; c < dim; ++c) output[c] += weights[j] * value[c];
          }
          to.outputs.insert(to.outputs.end(), output.begin(), output.end());
        });
    network.prefill(tokens(kPrompt), 64);
    std::map<int, Recorded> all;
    for (const auto& [layers, rows] : expected) {
      auto& to = all[layers.first];
      to.rows.insert(to.rows.end(), rows.rows.begin(), rows.rows.end());
      to.queries.insert(to.queries.end(), rows.queries.begin(), rows.queries.end());
      to.outputs.insert(to.outputs.end(), rows.outputs.begin(), rows.outputs.end());
    }
    ASSERT_EQ(recorded().size(), all.size());
    for (const auto& [layer, rows] : all) {
      const auto& got = recorded()[layer];
      const int width = hparams().layer(layer).n_head * hparams().layer(layer).head_dim;
      ASSERT_EQ(got.rows, rows.rows);
      EXPECT_LT(worst_row(got.queries, rows.queries, width), tolerance()) << layer;
      EXPECT_LT(worst_row(got.outputs, rows.outputs, width), tolerance()) << layer;
    }
  }

  void expect_that_the_bytes_foretold_suffice() {
    for (const char* spec :
         {"full", "snapkv", "kvzip", "kvzap", "r-kv", "critical(snapkv)", "refit(ada(snapkv))", "refit(ems)"}) {
      const auto options = with_budget(spec);
      Session session(model_, {1, Precision::f32, 64, Pack::automatic, folder_ / "model.cal"});
      const auto before = session.memory().held;
      const auto foretold = session.prefill_bytes(kPrompt, std::span(&options, 1));
      session.prefill(tokens(kPrompt), std::span(&options, 1));
      EXPECT_LT(session.memory().peak - before, foretold + (4U << 20)) << spec;  // work space
    }
  }

  TinyModel tiny_;
  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Network> textbook_;
};

}  // namespace winnow::test
