// SPDX-License-Identifier: Apache-2.0
// Properties of a session, on small random networks.
#include "winnow/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cache/growing_lanes.h"
#include "engine/prompt_reading.h"
#include "engine/session_impl.h"
#include "network/bf16_kernel.h"
#include "policy/views.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/generate.h"
#include "winnow/methods.h"
#include "winnow/recommended.h"

namespace winnow {
namespace {

using test::options_of;

class SessionTest : public testing::Test {
 protected:
  explicit SessionTest(int layers = 3) {
    test::TinyModel tiny;
    tiny.n_layer = layers;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    calibration_ = test::calibrated(folder_ / "model.cal", *model_);
  }

  std::vector<Token> tokens(int n, unsigned seed = 1) const {
    return test::random_tokens(n, model_->info().n_vocab, seed);
  }

  std::vector<float> step(Session& session, Cache& cache, Token token) const {
    std::vector<float> logits(model_->info().n_vocab);
    Cache* const one = &cache;
    session.step(std::span(&one, 1), std::span(&token, 1), logits);
    return logits;
  }

  test::TempFolder folder_;
  std::string calibration_;
  std::shared_ptr<const Model> model_;
};

class OneLayer : public SessionTest {
 protected:
  OneLayer() : SessionTest(1) {}
};

/// Allows for f32 sums in a different order. The parity test derives the bound.
void expect_near(const std::vector<float>& a, const std::vector<float>& b, double relative = 1e-4) {
  ASSERT_EQ(a.size(), b.size());
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  EXPECT_LT(std::sqrt(difference / norm), relative);
}

TEST_F(SessionTest, one_pass_for_many_specs_equals_a_pass_for_each) {
  const auto ids = tokens(150);
  const std::vector<CacheOptions> all = {options_of("full"), options_of("snapkv", "64"),
                                         options_of("streaming-llm", "40"),
                                         options_of("snapkv:window=8,pool=mean", "30%", "q8_0")};
  Session session(model_, {2, Precision::automatic, 32});
  const auto together = session.prefill(ids, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto alone = session.prefill(ids, std::span(all).subspan(i, 1));
    EXPECT_EQ(alone.logits, together.logits);
    EXPECT_EQ(alone.caches.front().kept(), together.caches[i].kept()) << all[i].spec.print();
  }
}

TEST_F(SessionTest, a_plan_tells_vectors_from_facts) {
  constexpr int kTokens = 500;
  Session session(model_, {1, Precision::automatic, 64});
  const auto plan = [&](const char* spec) {
    const auto keep = options_of(spec, "40");
    return engine::ReadingPlan(session.impl(), kTokens, keep).bytes();
  };
  const auto& hparams = session.impl().hparams;
  const auto sums = std::size_t{4} * kTokens * static_cast<std::size_t>(hparams.layer(0).n_head);
  for (const char* spec : {"snapkv", "h2o", "lookahead(snapkv)", "kvzip:rank=model"}) {
    const auto bytes = plan(spec);
    EXPECT_GE(bytes.facts, sums) << spec;  // received attention of each key in each query head
    EXPECT_LE(bytes.rest, bytes.vectors + bytes.facts) << spec;
    EXPECT_GE(bytes.rest, std::max(bytes.vectors, bytes.facts)) << spec;
  }
  EXPECT_LT(plan("streaming-llm").facts, sums);  // has no observers
  EXPECT_EQ(plan("streaming-llm").vectors, plan("snapkv").vectors);
}

TEST_F(SessionTest, prefills_that_take_turns_read_what_each_reads_alone) {
  const auto text = tokens(90);
  const std::vector<std::vector<Token>> questions = {tokens(40, 2), {}, tokens(7, 3)};
  const std::vector<CacheOptions> some = {options_of("h2o", "40"), options_of("snapkv", "60")};
  const auto other = tokens(150, 4);
  const std::vector<CacheOptions> again = {options_of("kvzip:chunk=50", "40"), options_of("expected-attention", "30")};
  Session session(model_, {2, Precision::automatic, 32});
  auto& impl = session.impl();
  const engine::ReadingPlan of_first(impl, {.text = 90, .questions = {40, 0, 7}}, some);
  const engine::ReadingPlan of_second(impl, {.text = 150}, again);
  const engine::ReadingInput first_input{.text = text, .questions = questions};
  const auto first_alone = engine::PromptReading(impl, of_first, first_input).run();
  const auto second_alone = engine::PromptReading(impl, of_second, {.text = other}).run();

  engine::PromptReading first(impl, of_first, first_input);
  engine::PromptReading second(impl, of_second, {.text = other});
  for (bool one = true, two = true; one || two;) {
    if (one) one = first.advance();
    if (two) two = second.advance();
    if (two) two = second.advance();  // so it is in a different layer from the first
  }
  for (std::size_t i = 0; i < questions.size(); ++i) {
    EXPECT_EQ(first.logits(i), first_alone[i].logits);
    const auto caches = first.take_caches(i);
    for (std::size_t c = 0; c < some.size(); ++c) EXPECT_EQ(caches[c].kept(), first_alone[i].caches[c].kept());
  }
  EXPECT_EQ(second.logits(0), second_alone[0].logits);
  const auto caches = second.take_caches(0);
  for (std::size_t c = 0; c < again.size(); ++c) EXPECT_EQ(caches[c].kept(), second_alone[0].caches[c].kept());
}

TEST_F(SessionTest, the_bytes_that_are_foretold_are_needed) {
  const auto ids = tokens(700);
  for (const char* spec :
       {"full", "snapkv", "kvzip:chunk=100", "kvzip", "dapq", "lookahead(snapkv)", "kvzip:rank=model"}) {
    const auto cache = options_of(spec, "40");
    Session session(model_, {1, Precision::automatic, 32});
    const auto before = session.memory().held;
    const auto foretold = session.prefill_bytes(700, std::span(&cache, 1));
    session.prefill(ids, std::span(&cache, 1));
    EXPECT_GE(session.memory().peak - before, foretold) << spec;
    EXPECT_LT(session.memory().peak - before, foretold + (4U << 20)) << spec;  // work space
  }
}

/// A mixture whose experts are packed one at a time from 128 tokens on.
class SessionOfExperts : public SessionTest {
 protected:
  SessionOfExperts() {
    test::TinyModel tiny = test::tiny_of("qwen3moe");
    tiny.n_expert = 8;
    write_tiny_gguf(tiny, folder_ / "experts.gguf");
    model_ = Model::load(folder_ / "experts.gguf");
  }
};

TEST_F(SessionOfExperts, needs_the_bytes_that_are_foretold) {
  const auto ids = tokens(700);
  for (const char* spec : {"full", "snapkv", "kvzip:chunk=100"}) {
    const auto cache = options_of(spec, "40");
    for (const auto pack : {Pack::automatic, Pack::layer}) {
      if (pack == Pack::layer && !network::Bf16Kernel::available()) continue;
      Session session(model_, {1, Precision::automatic, 32, pack});
      const auto before = session.memory().held;
      const auto foretold = session.prefill_bytes(700, std::span(&cache, 1));
      session.prefill(ids, std::span(&cache, 1));
      EXPECT_GE(session.memory().peak - before, foretold) << spec;
      EXPECT_LT(session.memory().peak - before, foretold + (4U << 20)) << spec;  // work space
    }
  }
}

TEST_F(SessionOfExperts, reads_prompts_that_take_turns_as_if_alone) {
  const std::vector<Token> texts[] = {tokens(300), tokens(200, 4)};
  const auto keep = options_of("snapkv", "60");
  Session session(model_, {2, Precision::automatic, 64});
  const auto begin = [&](const std::vector<Token>& text) {
    const engine::ReadingPlan plan(session.impl(), static_cast<int>(text.size()), keep);
    return std::make_unique<engine::PromptReading>(session.impl(), plan, engine::ReadingInput{.text = text});
  };
  std::vector<std::vector<float>> alone;
  for (const auto& text : texts) alone.push_back(begin(text)->run().front().logits);
  const auto first = begin(texts[0]);
  const auto second = begin(texts[1]);
  for (bool one = true, two = true; one || two;) {
    if (one) one = first->advance();
    if (two) two = second->advance();
    if (two) two = second->advance();
  }
  EXPECT_EQ(first->logits(0), alone[0]);
  EXPECT_EQ(second->logits(0), alone[1]);
}

TEST_F(SessionTest, questions_after_a_shared_text_are_as_if_alone) {
  const auto text = tokens(90);
  const std::vector<std::vector<Token>> questions = {tokens(7, 2), tokens(40, 3), {}};
  const auto cache = options_of("snapkv:window=16", "48", "f32");
  Session session(model_, {2, Precision::f32, 64});
  const auto together = session.prefill(text, questions, std::span(&cache, 1));
  for (std::size_t i = 0; i < questions.size(); ++i) {
    auto whole = text;
    whole.insert(whole.end(), questions[i].begin(), questions[i].end());
    const auto alone = session.prefill(whole, std::span(&cache, 1));
    expect_near(together[i].logits, alone.logits);
    EXPECT_EQ(together[i].caches.front().kept(), alone.caches.front().kept()) << i;
  }
}

TEST_F(SessionTest, extending_equals_reading_at_once) {
  const auto ids = tokens(200);
  const auto cache = options_of("full", "", "f32");
  Session session(model_, {2, Precision::f32, 512});
  const auto whole = session.prefill(ids, std::span(&cache, 1));
  auto part = session.prefill(std::span(ids).first(50), std::span(&cache, 1));
  expect_near(session.extend(part.caches.front(), std::span(ids).subspan(50)), whole.logits);
  EXPECT_EQ(part.caches.front().kept(), whole.caches.front().kept());
}

TEST_F(SessionTest, a_budget_that_nothing_exceeds_changes_no_bit) {
  const auto ids = tokens(60);
  std::vector<CacheOptions> all = {options_of("full"), options_of("snapkv", "60"),
                                   options_of("streaming-llm:positions=absolute", "100")};
  for (const auto& method : list_methods()) {
    all.push_back(options_of(method.name, "100"));
    const auto positions =
        std::find_if(method.options.begin(), method.options.end(), [](const auto& o) { return o.name == "positions"; });
    if (positions != method.options.end()) all.push_back(options_of(method.name + ":positions=cache", "100"));
  }
  Session session(model_, {.calibration = calibration_});
  auto prefilled = session.prefill(ids, all);
  for (const Token token : tokens(20, 9)) {
    const auto expected = step(session, prefilled.caches[0], token);
    for (std::size_t i = 1; i < all.size(); ++i)
      EXPECT_EQ(step(session, prefilled.caches[i], token), expected) << all[i].spec.print();
  }
}

TEST_F(SessionTest, lengths_are_the_budget_and_bytes_follow) {
  const auto ids = tokens(200);
  const auto& info = model_->info();
  for (const char* type : {"f32", "f16", "bf16", "q8_0", "q4_0", "q8_0/f16"}) {
    for (const char* spec : {"snapkv", "streaming-llm"}) {
      const auto cache = options_of(spec, "50", type);
      Session session(model_, {});
      const auto prefilled = session.prefill(ids, std::span(&cache, 1));
      const auto stats = prefilled.caches.front().stats();
      EXPECT_EQ(stats.entries_min, 50);
      EXPECT_EQ(stats.entries_max, 50);
      const auto entry = cache::entry_bytes({info.n_head_kv, info.head_dim, cache.kv_type, 0});
      EXPECT_EQ(stats.bytes_held, 50 * entry * static_cast<std::size_t>(info.n_layer * info.n_head_kv))
          << spec << " " << type;
    }
  }
}

TEST_F(SessionTest, a_byte_budget_is_kept) {
  const auto cache = options_of("snapkv", "100KiB");
  Session session(model_, {});
  const auto prefilled = session.prefill(tokens(200), std::span(&cache, 1));
  const auto held = prefilled.caches.front().stats().bytes_held;
  EXPECT_LE(held, 100U * 1024U);
  EXPECT_GT(held, 95U * 1024U);
}

TEST_F(SessionTest, streaming_holds_its_budget_for_200_steps) {
  const auto cache = options_of("streaming-llm", "32");
  Session session(model_, {});
  auto prefilled = session.prefill(tokens(100), std::span(&cache, 1));
  auto& sequence = prefilled.caches.front();
  const auto bytes = sequence.stats().bytes_held;
  int position = 100;
  for (const Token token : tokens(200, 5)) {
    step(session, sequence, token);
    ++position;
    ASSERT_EQ(sequence.stats().bytes_held, bytes);
    std::vector<std::int32_t> expected = {0, 1, 2, 3};
    for (int p = position - 28; p < position; ++p) expected.push_back(p);
    ASSERT_EQ(sequence.kept()[1][1], expected);
  }
}

TEST_F(SessionTest, streaming_grows_into_its_budget_first) {
  const auto cache = options_of("streaming-llm", "32");
  Session session(model_, {});
  auto prefilled = session.prefill(tokens(10), std::span(&cache, 1));
  for (const Token token : tokens(60, 5)) step(session, prefilled.caches.front(), token);
  const auto kept = prefilled.caches.front().kept()[0][0];
  EXPECT_EQ(kept.size(), 32U);
  EXPECT_EQ(kept[3], 3);
  EXPECT_EQ(kept[4], 70 - 28);
}

/// In a network of one layer an entry depends only on its own token, so streaming with positions in the cache must
/// equal reading the kept tokens as a short text.
TEST_F(OneLayer, streaming_in_cache_positions_equals_a_short_text) {
  const auto cache = options_of("streaming-llm", "24", "f32");
  const auto full = options_of("full", "", "f32");
  Session session(model_, {2, Precision::f32, 512});
  auto ids = tokens(80);
  auto prefilled = session.prefill(ids, std::span(&cache, 1));
  for (const Token token : tokens(60, 4)) {
    ids.push_back(token);
    const auto logits = step(session, prefilled.caches.front(), token);
    std::vector<Token> text(ids.begin(), ids.begin() + 4);
    text.insert(text.end(), ids.end() - 20, ids.end());
    expect_near(logits, session.prefill(text, std::span(&full, 1)).logits);
  }
}

/// The same for methods whose heads all keep the same tokens: reading these and the new token as a text.
TEST_F(OneLayer, positions_in_the_cache_equal_a_short_text) {
  const auto full = options_of("full", "", "f32");
  for (const char* spec : {"tova:positions=cache", "chunk(snapkv:window=8,positions=cache)"}) {
    for (const char* budget : {"24", "100"}) {  // 100: nothing is evicted before the 20th step
      const auto cache = options_of(spec, budget, "f32");
      Session session(model_, {2, Precision::f32, 512});
      auto ids = tokens(80);
      auto prefilled = session.prefill(ids, std::span(&cache, 1));
      for (const Token token : tokens(40, 4)) {
        std::vector<Token> text;
        const auto kept = prefilled.caches.front().kept();
        for (const auto position : kept[0][0]) text.push_back(ids[position]);
        ids.push_back(token);
        text.push_back(token);
        expect_near(step(session, prefilled.caches.front(), token), session.prefill(text, std::span(&full, 1)).logits);
        ASSERT_FALSE(HasFailure()) << spec << " budget " << budget << " position " << ids.size();
      }
    }
  }
}

TEST_F(SessionTest, every_method_runs_with_every_encoding_and_keeps_its_budget) {
  const auto ids = tokens(150);
  for (const auto& method : list_methods()) {
    for (const char* type : {"f16", "q8_0", "q4_0/bf16"}) {
      const auto cache = options_of(method.name, "64", type);
      Session session(model_, {2, Precision::automatic, 64, Pack::automatic, calibration_});
      auto prefilled = session.prefill(ids, std::span(&cache, 1));
      auto& sequence = prefilled.caches.front();
      const auto& parts = sequence.options().spec.method();
      if (parts.evicts()) {
        EXPECT_DOUBLE_EQ(sequence.stats().entries_per_head_mean, 64) << method.name;
      }
      for (const Token token : tokens(40, 5)) {
        const auto logits = step(session, sequence, token);
        ASSERT_TRUE(std::all_of(logits.begin(), logits.end(), [](float x) { return std::isfinite(x); })) << method.name;
        if (parts.schedule == policy::Schedule::step) {
          EXPECT_GE(sequence.stats().entries_per_head_mean, 64) << method.name;
          EXPECT_LT(sequence.stats().entries_per_head_mean, 64 + parts.decoding.buffer) << method.name;
        }
        if (parts.retrieves) {
          EXPECT_LE(sequence.stats().attended_per_head_mean, method.name == "quest" ? (2 * 190 + 64) / 3.0 : 64)
              << method.name;  // two layers of three are dense
        }
      }
    }
  }
}

TEST_F(SessionTest, uneven_lanes_keep_their_shares_while_decoding) {
  Session session(model_, {2, Precision::automatic, 64});
  for (const char* spec : {"ada(h2o)", "pyramid(ada(ahakv))", "ada(sage-kv)"}) {
    const auto cache = options_of(spec, "40");
    auto prefilled = session.prefill(tokens(150), std::span(&cache, 1));
    auto& sequence = prefilled.caches.front();
    const auto lengths = [&] {
      std::vector<std::size_t> out;
      const auto kept = sequence.kept();
      for (const auto& layer : kept) {
        for (const auto& head : layer) out.push_back(head.size());
      }
      return out;
    };
    const auto before = lengths();
    EXPECT_NE(*std::max_element(before.begin(), before.end()), 40U) << spec;
    for (const Token token : tokens(60, 5)) step(session, sequence, token);
    EXPECT_EQ(lengths(), before) << spec;
  }
}

TEST_F(SessionTest, retrieval_reads_a_budget_and_keeps_everything) {
  Session session(model_, {2, Precision::automatic, 64});
  for (const char* spec : {"sage-kv:refresh=8", "infllm"}) {
    const auto cache = options_of(spec, "64");
    auto prefilled = session.prefill(tokens(150), std::span(&cache, 1));
    for (int i = 0; i < 20; ++i) {
      step(session, prefilled.caches.front(), 5);
      const auto stats = prefilled.caches.front().stats();
      EXPECT_DOUBLE_EQ(stats.entries_per_head_mean, 151 + i);
      if (std::string(spec) == "infllm" || (i + 1) % 8 != 0) {
        EXPECT_LE(stats.attended_per_head_mean, 64) << spec << " step " << i;
      } else {
        EXPECT_DOUBLE_EQ(stats.attended_per_head_mean, 151 + i);
      }
    }
  }
  auto bytes = options_of("quest", "64MiB");
  EXPECT_THROW(bytes.check(), UsageError);
}

TEST_F(SessionTest, quest_around_a_method_reads_all_of_a_prompt_that_fits) {
  Session session(model_, {2, Precision::automatic, 64});
  std::vector<CacheOptions> options = {options_of("full"), options_of("quest(snapkv):page=4,dense=0", "160")};
  auto prefilled = session.prefill(tokens(150), options);
  EXPECT_EQ(prefilled.caches[1].stats().attended_per_head_mean, 150);
  for (int i = 0; i < 12; ++i) {
    const auto logits = step(session, prefilled.caches[1], 5);
    const auto expected = step(session, prefilled.caches[0], 5);
    EXPECT_EQ(logits == expected, i < 10) << "step " << i;
  }
}

TEST_F(SessionTest, quest_around_a_method_keeps_a_budget_and_reads_a_share_of_it) {
  Session session(model_, {2, Precision::automatic, 64});
  const auto cache = options_of("quest(snapkv:window=8):read=0.25,page=4,dense=0", "64");
  auto prefilled = session.prefill(tokens(150), std::span(&cache, 1));
  EXPECT_DOUBLE_EQ(prefilled.caches.front().stats().attended_per_head_mean, 16);
  for (int i = 1; i <= 20; ++i) {
    step(session, prefilled.caches.front(), 5);
    const auto stats = prefilled.caches.front().stats();
    EXPECT_DOUBLE_EQ(stats.entries_per_head_mean, 64 + i);
    const int pages = (64 + i + 3) / 4;
    const int last = 64 + i - (pages - 1) * 4;
    EXPECT_DOUBLE_EQ(stats.attended_per_head_mean, ((pages + 3) / 4 - 1) * 4 + last) << "step " << i;
  }
}

/// Also for a prompt that fits, so it has no scores, and then grows beyond the budget.
TEST_F(SessionTest, decoding_keeps_the_budget_of_every_method_that_it_goes_around) {
  constexpr int kBudget = 72;
  Session session(model_, {2, Precision::automatic, 64, Pack::automatic, calibration_});
  for (const std::string inner : {"snapkv",
                                  "snapkv:positions=cache",
                                  "pyramidkv",
                                  "ada-snapkv",
                                  "finch",
                                  "nacl",
                                  "expected-attention",
                                  "kvzip",
                                  "kvzip:rank=model",
                                  "kvzip:normalize=plus",
                                  "kvzap",
                                  "dapq",
                                  "compactor",
                                  "lagkv",
                                  "knorm",
                                  "keydiff",
                                  "random",
                                  "h2o:when=prefill",
                                  "lookahead(snapkv)",
                                  "critical(snapkv)",
                                  "kvzip(span(snapkv))",
                                  "refit(ada(span(snapkv)):floor=0,over=model)"}) {
    for (const int prompt : {30, kBudget, 150}) {
      const auto cache = options_of("decoding(" + inner + ")", std::to_string(kBudget));
      auto prefilled = session.prefill(tokens(prompt), std::span(&cache, 1));
      for (int i = 1; i <= 60; ++i) {
        step(session, prefilled.caches.front(), 5);
        EXPECT_DOUBLE_EQ(prefilled.caches.front().stats().entries_per_head_mean, std::min(prompt + i, kBudget))
            << inner << " prompt " << prompt << " step " << i;
      }
    }
  }
}

TEST_F(SessionTest, refresh_reads_everything_until_it_has_selected) {
  constexpr int kBudget = 64;
  Session session(model_, {2, Precision::automatic, 64});
  for (const int prompt : {50, kBudget, 90}) {
    const auto cache = options_of("sage-kv:refresh=10", std::to_string(kBudget));
    auto prefilled = session.prefill(tokens(prompt), std::span(&cache, 1));
    for (int i = 1; i <= 30; ++i) {
      step(session, prefilled.caches.front(), 5);
      const int length = prompt + i;
      const bool reads_all = length <= kBudget + 1 || i % 10 == 0;
      EXPECT_DOUBLE_EQ(prefilled.caches.front().stats().attended_per_head_mean, reads_all ? length : kBudget)
          << "prompt " << prompt << " step " << i;
    }
  }
}

/// Every method, and some wrappers.
std::vector<std::string> all_specs() {
  std::vector<std::string> out = {
      "ada(snapkv)",     "pyramid(h2o)",          "h2o:positions=cache", "quest(ada(snapkv)):page=4,dense=0",
      "kvzap:when=step", "triattention:buffer=5", "r-kv:buffer=9"};
  for (const auto& method : list_methods()) out.push_back(method.name);
  return out;
}

class OfPrecision : public SessionTest, public testing::WithParamInterface<Precision> {};

TEST_P(OfPrecision, a_row_does_not_depend_on_its_neighbours) {
  Session session(model_, {2, GetParam(), 64, Pack::automatic, calibration_});
  const auto specs = all_specs();
  std::vector<Cache> together;
  std::vector<Cache> alone;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto options = options_of(specs[i], "64", GetParam() == Precision::f32 ? "f32" : "f16");
    auto prefilled =
        session.prefill(tokens(50 + 7 * static_cast<int>(i), static_cast<unsigned>(i)), std::span(&options, 1));
    alone.push_back(prefilled.caches.front().clone());
    together.push_back(std::move(prefilled.caches.front()));
  }
  const auto vocabulary = static_cast<std::size_t>(model_->info().n_vocab);
  for (std::size_t round = 0; round < 12; ++round) {
    // In each round other sequences are present, and each row has another index.
    std::vector<std::size_t> running;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto which = (i + 5 * round) % specs.size();
      if (round == 0 || (which + round) % 4 != 0) running.push_back(which);
    }
    const auto next = tokens(static_cast<int>(running.size()), 50 + static_cast<unsigned>(round));
    std::vector<Cache*> pointers;
    for (const auto which : running) pointers.push_back(&together[which]);
    std::vector<float> logits(running.size() * vocabulary);
    session.step(pointers, next, logits);
    for (std::size_t i = 0; i < running.size(); ++i) {
      const auto row = std::span(logits).subspan(i * vocabulary, vocabulary);
      ASSERT_EQ(std::vector(row.begin(), row.end()), step(session, alone[running[i]], next[i]))
          << specs[running[i]] << " in round " << round;
    }
  }
  for (std::size_t i = 0; i < specs.size(); ++i) EXPECT_EQ(together[i].kept(), alone[i].kept()) << specs[i];
}

INSTANTIATE_TEST_SUITE_P(all, OfPrecision, testing::Values(Precision::f32, Precision::automatic),
                         [](const auto& test) { return test.param == Precision::f32 ? "f32" : "automatic"; });

TEST_F(SessionTest, a_clone_is_independent) {
  const auto cache = options_of("snapkv", "40");
  Session session(model_, {});
  auto prefilled = session.prefill(tokens(80), std::span(&cache, 1));
  Cache copy = prefilled.caches.front().clone();
  const auto before = copy.kept();
  const auto expected = step(session, prefilled.caches.front(), 5);
  EXPECT_EQ(copy.kept(), before);
  EXPECT_EQ(step(session, copy, 5), expected);
}

TEST_F(SessionTest, results_do_not_depend_on_the_number_of_threads) {
  const auto cache = options_of("snapkv", "40");
  const auto ids = tokens(150);
  Session one(model_, {1, Precision::automatic, 64});
  Session three(model_, {3, Precision::automatic, 64});
  const auto a = one.prefill(ids, std::span(&cache, 1));
  const auto b = three.prefill(ids, std::span(&cache, 1));
  EXPECT_EQ(a.logits, b.logits);
  EXPECT_EQ(a.caches.front().kept(), b.caches.front().kept());
}

TEST_F(SessionTest, memory_goes_back) {
  Session session(model_, {});
  const auto cache = options_of("full");
  session.prefill(tokens(100), std::span(&cache, 1));
  const auto held = session.memory().held;
  session.prefill(tokens(100), std::span(&cache, 1));
  EXPECT_EQ(session.memory().held, held);
}

TEST_F(SessionTest, a_stopped_prefill_leaves_the_session_usable) {
  Session session(model_, {});
  const auto cache = options_of("full");
  const auto expected = session.prefill(tokens(50), std::span(&cache, 1)).logits;
  session.on_stop([] { return true; });
  EXPECT_THROW(session.prefill(tokens(50), std::span(&cache, 1)), Interrupted);
  session.on_stop({});
  EXPECT_EQ(session.prefill(tokens(50), std::span(&cache, 1)).logits, expected);
}

TEST_F(SessionTest, bad_input_is_refused) {
  Session session(model_, {});
  const auto cache = options_of("full");
  EXPECT_THROW(session.prefill({}, std::span(&cache, 1)), InputError);
  const std::vector<Token> wrong = {1, 100000};
  EXPECT_THROW(session.prefill(wrong, std::span(&cache, 1)), InputError);
  EXPECT_THROW(options_of("snapkv").check(), UsageError);
  const auto small = options_of("snapkv", "32");
  EXPECT_THROW(session.prefill(tokens(100), std::span(&small, 1)), UsageError);
  EXPECT_THROW(Session(model_, {-1, Precision::automatic, 512}), UsageError);
}

TEST_F(SessionTest, generation_is_repeatable_and_stops) {
  Session session(model_, {});
  const auto cache = options_of("full");
  GenerateOptions options;
  options.max_tokens = 30;
  options.end = EndOfSequence::ignored;
  options.sampling.temperature = 1;
  options.sampling.seed = 11;
  const auto run = [&] {
    auto prefilled = session.prefill(tokens(40), std::span(&cache, 1));
    Cache* const one = &prefilled.caches.front();
    return generate(session, std::span(&one, 1), std::span(&prefilled.logits, 1), options).front();
  };
  const auto first = run();
  EXPECT_EQ(first.tokens.size(), 30U);
  EXPECT_EQ(first.finish, FinishReason::length);
  EXPECT_EQ(run().tokens, first.tokens);
  const std::string middle = first.text.substr(first.text.size() / 2, 2);
  options.stop = {middle};
  const auto stopped = run();
  EXPECT_EQ(stopped.finish, FinishReason::stop);
  EXPECT_EQ(stopped.text, first.text.substr(0, first.text.find(middle)));
}

TEST_F(SessionTest, logprobs_are_a_distribution) {
  Session session(model_, {});
  const auto cache = options_of("full");
  auto prefilled = session.prefill(tokens(40), std::span(&cache, 1));
  GenerateOptions options;
  options.max_tokens = 1;
  options.end = EndOfSequence::ignored;
  options.logprobs = model_->info().n_vocab;
  Cache* const one = &prefilled.caches.front();
  const auto generation = generate(session, std::span(&one, 1), std::span(&prefilled.logits, 1), options).front();
  double sum = 0;
  for (const auto& token : generation.logprobs.front().top) sum += std::exp(token.logprob);
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(generation.logprobs.front().chosen.id, generation.logprobs.front().top.front().id);
}

std::string misuse(const std::shared_ptr<const Model>& model, const SessionOptions& options) {
  try {
    const Session session(model, options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST_F(SessionTest, packs_weights_only_where_that_is_possible) {
  EXPECT_NE(misuse(model_, {1, Precision::f32, 512, Pack::layer}).find("f32"), std::string::npos);
  EXPECT_NE(misuse(model_, {1, Precision::f32, 512, Pack::resident}).find("resident"), std::string::npos);
  EXPECT_EQ(misuse(model_, {1, Precision::f32, 512, Pack::automatic}), "");
  const std::string refused = misuse(model_, {1, Precision::automatic, 512, Pack::layer});
  EXPECT_EQ(refused.empty(), network::Bf16Kernel::available()) << refused;
}

TEST_F(SessionTest, counts_packed_weights_in_what_a_prefill_takes) {
  if (!network::Bf16Kernel::available()) GTEST_SKIP() << "this build or machine has no bf16 products";
  const CacheOptions full;
  const auto bytes = [&](Pack pack, int tokens) {
    return Session(model_, {1, Precision::automatic, 512, pack}).prefill_bytes(tokens, std::span(&full, 1));
  };
  EXPECT_GT(bytes(Pack::layer, 16), bytes(Pack::automatic, 16)) << "16 tokens do not pay for packing";
  EXPECT_EQ(bytes(Pack::layer, 512), bytes(Pack::automatic, 512));
}

TEST(CacheChoices, keep_q8_0_within_bytes_unless_they_say_otherwise) {
  const auto type = [](const char* kv, const char* budget, std::optional<std::string_view> kv_type = {}) {
    return CacheChoice::parse(kv, Budget::parse(budget), kv_type).with(Protocol::aware).kv_type.print();
  };
  EXPECT_EQ(type("snapkv", "64MiB"), "q8_0");
  EXPECT_EQ(type("auto", "64KiB"), "q8_0");
  EXPECT_EQ(type("auto:fast", "64KiB"), "q8_0");
  EXPECT_EQ(type("snapkv", "64MiB", "f16"), "f16");
  EXPECT_EQ(type("snapkv", "512"), "f16");
  EXPECT_EQ(type("snapkv", "10%"), "f16");
  EXPECT_EQ(type("full", "64MiB"), "f16");
}

}  // namespace
}  // namespace winnow
