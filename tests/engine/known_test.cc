// SPDX-License-Identifier: Apache-2.0
// Facts that a method gets about a prompt besides keys, values and attention: the classes of tokens, and the length of
// the question.
#include <gtest/gtest.h>

#include <cctype>
#include <memory>
#include <string>
#include <vector>

#include "base/as_size.h"
#include "engine/model_impl.h"
#include "engine/sequence.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/policy/registry.h"
#include "winnow/scheduler.h"
#include "winnow/session.h"

namespace winnow::test {
namespace {

/// Facts about a prompt in one layer.
struct Told {
  int layer;
  int tokens;
  int question;
  std::vector<TokenClass> classes;
};
std::vector<Told> told;

policy::Scores ask(const policy::LayerView& view, const policy::AlwaysKept& /*always_kept*/) {
  told.push_back({view.layer, view.tokens(), view.prompt().question, {view.classes.begin(), view.classes.end()}});
  return {view.shape.kv_heads, view.tokens()};
}

policy::Preset asking() {
  return {.name = "asking",
          .summary = "notes what it is told",
          .paper = "a test",
          .options = {},
          .build = [](const policy::Options&) {
            policy::Method method;
            method.selection.always_kept = {"two", [](const policy::LayerPrompt&, int) {
                                              return policy::AlwaysKept{2, 0};
                                            }};
            method.selection.least = {"two", [](const policy::LayerPrompt&) { return 2; }};
            method.selection.score = {"nothing", ask};
            method.schedule = policy::Schedule::once;
            return method;
          }};
}

class KnownTest : public testing::Test {
 protected:
  static constexpr int kLayers = 3;

  static void SetUpTestSuite() { policy::add_method(asking()); }

  KnownTest() {
    TinyModel tiny;
    tiny.n_layer = kLayers;
    write_tiny_gguf(tiny, path_);
    model_ = Model::load(path_);
    session_ = std::make_unique<Session>(model_, SessionOptions{2, Precision::f32, 64});
    told.clear();
  }

  std::vector<Token> tokens(int n, unsigned seed = 1) const { return random_tokens(n, model_->info().n_vocab, seed); }

  static std::vector<Token> joined(std::vector<Token> text, const std::vector<Token>& more) {
    text.insert(text.end(), more.begin(), more.end());
    return text;
  }

  void expect_told(std::size_t from, const std::vector<Token>& prompt, int question) const {
    ASSERT_GE(told.size(), from + kLayers);
    const auto& vocab = model_->impl().vocab;
    for (std::size_t i = 0; i < kLayers; ++i) {
      const Told& one = told[from + i];
      EXPECT_EQ(one.layer, static_cast<int>(i));
      EXPECT_EQ(one.question, question);
      ASSERT_EQ(one.classes.size(), prompt.size());
      for (std::size_t j = 0; j < prompt.size(); ++j) EXPECT_EQ(one.classes[j], vocab.class_of(prompt[j]));
    }
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Session> session_;
};

TEST_F(KnownTest, of_each_token_its_class_by_the_vocabulary_s_text) {
  const auto& vocab = model_->impl().vocab;
  int words = 0;
  for (Token token = 0; token < model_->info().n_vocab; ++token) {
    const auto text = vocab.has_text(token) ? model_->vocab().text(token) : std::string();
    const auto is = vocab.class_of(token);
    EXPECT_EQ(is.ends_line, text.empty() || text.find('\n') != std::string::npos) << token;
    const auto in_word = [](char c) {
      return c == '_' || c == '-' || (static_cast<unsigned char>(c) < 128 && std::isalnum(c) != 0);
    };
    EXPECT_EQ(is.begins_in_word, !text.empty() && in_word(text.front())) << token;
    EXPECT_EQ(is.ends_in_word, !text.empty() && in_word(text.back())) << token;
    if (text.size() == 1) {
      EXPECT_EQ(is.ends_sentence, text == "." || text == "!" || text == "?") << token;
    }
    words += is.ends_in_word ? 1 : 0;
  }
  EXPECT_GE(words, 64);
  EXPECT_EQ(vocab.class_of(-1), TokenClass{});
  EXPECT_EQ(vocab.class_of(model_->info().n_vocab + 7), TokenClass{});
}

TEST_F(KnownTest, each_question_behind_a_text_is_told_by_its_length) {
  const auto keep = options_of("asking", "20");
  const auto text = tokens(100);
  const std::vector<std::vector<Token>> questions = {tokens(7, 2), tokens(30, 3)};
  session_->prefill(text, questions, std::span(&keep, 1));
  // Both prompts pass through each layer before the next one.
  std::vector<Told> all = told;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    told.clear();
    for (std::size_t l = 0; l < kLayers; ++l) told.push_back(all[2 * l + i]);
    expect_told(0, joined(text, questions[i]), static_cast<int>(questions[i].size()));
  }
  told.clear();
  session_->prefill(text, std::span(&keep, 1));
  expect_told(0, text, 0);
  told.clear();
  session_->prefill({}, std::span(questions).last(1), std::span(&keep, 1));  // a prompt that is only a question
  expect_told(0, questions.back(), 0);
}

TEST_F(KnownTest, a_request_tells_its_question_where_it_is_compressed_with_it) {
  const Prompt prompt{tokens(60), tokens(9, 2)};
  Scheduler scheduler(*session_, {});
  const auto read = [&scheduler](Request request) {
    told.clear();
    request.keep = options_of("asking", "20");
    request.generate.max_tokens = 1;
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
  };
  for (const auto protocol : {Protocol::aware, Protocol::agnostic}) {
    read(request_of(prompt, protocol));
    const bool is_aware = protocol == Protocol::aware;
    expect_told(0, is_aware ? joined(prompt.text, prompt.question) : prompt.text, is_aware ? 9 : 0);
  }
  const auto staged = [&prompt](std::vector<std::size_t> stages) {
    Request out = request_of(prompt, Protocol::aware);
    out.text().stages = std::move(stages);
    return out;
  };
  read(staged({69}));
  expect_told(0, joined(prompt.text, prompt.question), 9);
  read(staged({30, 69}));
  expect_told(0, {prompt.text.begin(), prompt.text.begin() + 30}, 0);
  expect_told(kLayers, joined({prompt.text.begin() + 30, prompt.text.end()}, prompt.question), 9);
  EXPECT_THROW(read(staged({61, 69})), UsageError);  // the question begins before the last stage
}

TEST_F(KnownTest, a_turn_that_is_compressed_has_classes_of_its_own) {
  const auto keep = options_of("asking", "20");
  auto cache = std::move(session_->prefill(tokens(10), std::span(&keep, 1)).caches.front());
  const auto turn = tokens(50, 4);
  session_->extend(cache, turn);
  session_->compress(cache, turn);
  expect_told(0, turn, 0);
}

TEST_F(KnownTest, a_window_of_the_question_is_a_window_of_its_length) {
  const auto text = tokens(120);
  const std::vector<std::vector<Token>> question = {tokens(11, 2)};
  const std::vector<CacheOptions> keep = {
      options_of("snapkv:window=question", "40"), options_of("snapkv:window=11", "40"),
      options_of("snapkv:window=question", "16"), options_of("snapkv:window=8", "16")};
  auto read = std::move(session_->prefill(text, question, keep).front());
  EXPECT_EQ(read.caches[0].kept(), read.caches[1].kept());
  EXPECT_EQ(read.caches[2].kept(), read.caches[3].kept());  // the window is at most half of the budget
  for (const auto& layer : read.caches[2].kept()) {
    for (const auto& head : layer) {
      ASSERT_EQ(head.size(), 16U);
      EXPECT_EQ(head[8], 131 - 8);
    }
  }
  Scheduler scheduler(*session_, {});
  std::vector<std::vector<std::vector<std::vector<std::int32_t>>>> kept;
  for (std::size_t i = 0; i < 2; ++i) {
    Request request = request_of({text, question.front()}, Protocol::aware);
    request.keep = keep[i];
    request.generate.max_tokens = 1;
    request.events.on_text = [&kept](const Cache& cache, std::span<const float>) { kept.push_back(cache.kept()); };
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
  }
  EXPECT_EQ(kept.at(0), kept.at(1));
}

/// A stored text is not used for a question of another length.
TEST_F(KnownTest, what_is_stored_goes_by_the_question_too) {
  const auto all = tokens(100);
  Scheduler scheduler(*session_, {.texts = {.memory = std::size_t{1} << 30U}});
  std::vector<std::vector<std::vector<std::vector<std::int32_t>>>> kept;
  std::vector<int> cached;
  for (const std::size_t asked : {5U, 20U, 5U}) {
    Request request;
    request.text().tokens = all;
    request.text().asked = asked;
    request.text().cache_salt = "";
    request.question = {7};
    request.keep = options_of("snapkv:window=question", "48");
    request.generate.max_tokens = 1;
    request.events.on_end = [&cached](const RequestEnd& end) { cached.push_back(end.cached_tokens); };
    request.events.on_text = [&kept](const Cache& cache, std::span<const float>) { kept.push_back(cache.kept()); };
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
  }
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_NE(kept[0], kept[1]);
  EXPECT_EQ(kept[0], kept[2]);
  EXPECT_EQ(cached[0], 0);
  EXPECT_LT(cached[1], 80) << "blocks before the question may be found, but not the compressed text";
  EXPECT_EQ(cached[2], 100);
}

TEST_F(KnownTest, a_saved_cache_knows_its_question) {
  const auto text = tokens(120);
  const std::vector<std::vector<Token>> question = {tokens(11, 2)};
  const auto keep = options_of("ems:window=question", "40", "f32");
  auto read = std::move(session_->prefill(text, question, std::span(&keep, 1)).front());
  Transcript transcript;
  transcript.tokens = joined(text, question.front());
  const std::string file = folder_ / "saved.kv";
  session_->save(file, read.caches.front(), read.logits, transcript);
  auto restored = session_->load(file);
  EXPECT_EQ(restored.cache.kept(), read.caches.front().kept());
  EXPECT_EQ(restored.cache.impl().layer(0).terms().prompt.question, 11);
  std::vector<float> a(as_size(model_->info().n_vocab));
  auto b = a;
  for (const Token token : tokens(30, 5)) {  // while decoding, the window slides
    Cache* one = &read.caches.front();
    session_->step(std::span(&one, 1), std::span(&token, 1), a);
    one = &restored.cache;
    session_->step(std::span(&one, 1), std::span(&token, 1), b);
    ASSERT_EQ(a, b);
  }
}

}  // namespace
}  // namespace winnow::test
