// SPDX-License-Identifier: Apache-2.0
// Answers under grammars, compared with a slow reference that has the language as a list of texts, and with std::regex.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "engine/sampler.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/scheduler.h"

namespace winnow {
namespace {

constexpr const char* kWords = R"(root ::= "alpha" | "alps" | "bet" | "better" | "né")";
const std::set<std::string> kLanguage{"alpha", "alps", "bet", "better", "né"};

GenerateOptions with(const std::string& grammar, int max_tokens = 256) {
  GenerateOptions out;
  out.grammar = grammar;
  out.max_tokens = max_tokens;
  return out;
}

class GrammarTest : public testing::Test {
 public:
  GrammarTest() {
    write_tiny_gguf(test::TinyModel(), folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    session_.emplace(model_, SessionOptions{2});
  }

  std::vector<Token> text(unsigned seed) const { return test::random_tokens(20, model_->info().n_vocab, seed); }

  Generation answer(unsigned text_seed, const GenerateOptions& options) {
    const CacheOptions keep;
    auto read = session_->prefill(text(text_seed), std::span(&keep, 1));
    Cache* const one = &read.caches.front();
    return generate(*session_, std::span(&one, 1), std::span(&read.logits, 1), options).front();
  }

  /// True if a text of the language continues with the token after `part`.
  bool goes_on(const std::string& part, Token token) const {
    const std::string longer = part + model_->vocab().text(token);
    return longer != part &&
           std::any_of(kLanguage.begin(), kLanguage.end(), [&](const auto& word) { return word.starts_with(longer); });
  }

  bool is_allowed(const std::string& part, Token token, EndOfSequence end) const {
    if (model_->vocab().ends(token)) return end == EndOfSequence::stops && kLanguage.contains(part);
    return goes_on(part, token);
  }

  /// Chooses the most probable allowed token until none is allowed or the sequence ends.
  Generation reference(unsigned text_seed, EndOfSequence end) {
    const CacheOptions keep;
    auto read = session_->prefill(text(text_seed), std::span(&keep, 1));
    Cache* const one = &read.caches.front();
    auto logits = read.logits;
    Generation out;
    for (;;) {
      Token best = -1;
      for (Token t = 0; t < model_->info().n_vocab; ++t) {
        if (is_allowed(out.text, t, end) && (best < 0 || logits[t] > logits[best])) best = t;
      }
      if (best < 0 || model_->vocab().ends(best)) return out;
      out.tokens.push_back(best);
      out.text += model_->vocab().text(best);
      out.logprobs.push_back(engine::log_probabilities(logits, best, 2));
      session_->step(std::span(&one, 1), std::span(&best, 1), logits);
    }
  }

  std::vector<std::string> answers_to(Request request) {
    Scheduler scheduler(*session_, {});
    std::vector<std::string> out;
    request.events.on_end = [&out](const RequestEnd& end) {
      EXPECT_FALSE(end.error);
      for (const auto& one : end.answers) out.push_back(one.text);
    };
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
    return out;
  }

  std::vector<Generation> answers(const GenerateOptions& options, int n) {
    Scheduler scheduler(*session_, {});
    std::vector<Generation> out;
    Request request;
    request.text().tokens = text(1);
    request.generate = options;
    request.answers = n;
    request.events.on_end = [&out](RequestEnd end) {
      EXPECT_FALSE(end.error);
      out = std::move(end.answers);
    };
    scheduler.add(std::move(request));
    while (scheduler.advance()) continue;
    return out;
  }

 private:
  test::TempFolder folder_;

 protected:
  std::shared_ptr<const Model> model_;
  std::optional<Session> session_;
};

TEST_F(GrammarTest, a_greedy_answer_has_the_most_probable_tokens_that_are_allowed) {
  std::set<std::string> seen;
  for (unsigned seed = 0; seed < 30; ++seed) {
    for (const auto end : {EndOfSequence::stops, EndOfSequence::ignored}) {
      const auto expected = reference(seed, end);
      auto options = with(kWords);
      options.end = end;
      options.logprobs = 2;
      const auto got = answer(seed, options);
      EXPECT_EQ(got.tokens, expected.tokens);
      EXPECT_EQ(got.text, expected.text);
      EXPECT_EQ(got.finish, FinishReason::stop);
      ASSERT_EQ(got.logprobs.size(), expected.logprobs.size());
      for (std::size_t i = 0; i < got.logprobs.size(); ++i) {
        EXPECT_EQ(got.logprobs[i].chosen.logprob, expected.logprobs[i].chosen.logprob)
            << "the model's, not the grammar's";
        EXPECT_EQ(got.logprobs[i].top.front().id, expected.logprobs[i].top.front().id);
      }
      EXPECT_TRUE(kLanguage.contains(got.text)) << got.text;
      seen.insert(got.text);
    }
  }
  EXPECT_GE(seen.size(), 2) << "or the texts say nothing";
}

TEST_F(GrammarTest, sampled_answers_are_of_the_language_and_differ) {
  const std::regex number(R"(-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,3})?)");
  auto options = with("root ::= \"-\"? (\"0\" | [1-9] [0-9]{0,5}) (\".\" [0-9]{1,3})?");
  options.sampling.temperature = 2;
  options.sampling.top_k = 0;
  options.sampling.top_p = 1;
  options.sampling.min_p = 0;
  const auto all = answers(options, 60);
  std::set<std::string> seen;
  for (const auto& one : all) {
    EXPECT_TRUE(std::regex_match(one.text, number)) << one.text;
    EXPECT_EQ(one.finish, FinishReason::stop);
    seen.insert(one.text);
  }
  EXPECT_GE(seen.size(), 20) << "each answer has a place in the grammar of its own";
}

TEST_F(GrammarTest, an_answer_that_is_long_enough_is_cut) {
  const auto got = answer(1, with("root ::= [a-z]+", 7));
  EXPECT_TRUE(std::regex_match(got.text, std::regex("[a-z]{1,7}"))) << got.text;
}

TEST_F(GrammarTest, an_answer_ends_where_nothing_more_is_allowed_also_before_its_least_tokens) {
  auto options = with("root ::= [0-9]{4}", 50);
  options.min_tokens = 30;
  const auto got = answer(1, options);
  EXPECT_TRUE(std::regex_match(got.text, std::regex("[0-9]{4}"))) << got.text;
  EXPECT_EQ(got.finish, FinishReason::stop);
}

TEST_F(GrammarTest, other_stops_end_an_answer_as_ever) {
  const auto whole = answer(3, with("root ::= [a-z]{12}", 12));
  const std::string stop = whole.text.substr(4, 2);
  auto options = with("root ::= [a-z]{12}", 12);
  options.stop = {stop};
  const auto got = answer(3, options);
  EXPECT_EQ(got.text, whole.text.substr(0, whole.text.find(stop)));
  EXPECT_EQ(got.finish, FinishReason::stop);
}

TEST_F(GrammarTest, a_grammar_that_cannot_be_is_refused_before_anything_is_read) {
  const std::string deep(200, '(');
  for (const std::string& wrong :
       {std::string("rot ::= \"a\""), std::string("root ::= a"), std::string("root ::= \"a"),
        std::string("root ::= [a-"), std::string("hello"), std::string("root ::= \"a\"{3,1}"),
        std::string("root ::= \"a\"{5000}"), std::string("root ::= \"a\"{0,99999999999999999999}"), "root ::= " + deep,
        std::string("root ::= \"a\0b\"", 14), std::string((1 << 20) + 1, '#')}) {
    Request request;
    request.text().tokens = text(1);
    request.generate.grammar = wrong;
    Scheduler scheduler(*session_, {});
    EXPECT_THROW(scheduler.add(std::move(request)), UsageError) << wrong.substr(0, 50);
    EXPECT_EQ(request.text().tokens, text(1));
    EXPECT_FALSE(scheduler.advance());
  }
}

TEST_F(GrammarTest, a_grammar_whose_ways_double_with_each_character_is_followed_like_others) {
  auto options = with("root ::= a\na ::= \"(\" a \")x\" | \"(\" a \")y\" | \"z\"");
  for (Token t = 0; t < model_->info().n_vocab; ++t) {
    if (model_->vocab().text(t) == "(") options.sampling.logit_bias = {{t, 100.0F}};
  }
  EXPECT_EQ(answer(1, options).text, std::string(256, '('));
}

TEST_F(GrammarTest, an_answer_of_too_many_ways_ends_by_itself) {
  auto options = with("root ::= root root | [a-z]", 4000);
  options.end = EndOfSequence::ignored;
  EXPECT_THROW(answer(1, options), UsageError);
  EXPECT_TRUE(kLanguage.contains(answer(1, with(kWords)).text));
}

TEST_F(GrammarTest, no_request_holds_up_another_for_longer_than_its_steps) {
  // Each token of an answer takes more than a quarter of the steps allowed for all tokens of a turn.
  std::string grammar = "root ::= (\"0\"";
  for (int i = 0; i < 4000; ++i) grammar += fmt::format(" | \"{}\"", i % 10);
  grammar += ")*";
  constexpr int kAnswers = 12;
  auto options = with(grammar, 10);
  options.sampling.temperature = 1;
  const auto request_for = [&](int answers, std::uint32_t seed) {
    Request request;
    request.text().tokens = text(1);
    request.generate = options;
    request.generate.sampling.seed = seed;
    request.answers = answers;
    return request;
  };
  std::vector<std::string> alone;
  for (int i = 0; i < kAnswers; ++i) alone.push_back(answers_to(request_for(1, static_cast<std::uint32_t>(i))).front());

  Scheduler scheduler(*session_, {.max_itl = std::chrono::milliseconds(0)});
  Request other;
  other.text().tokens = text(2);
  other.generate.max_tokens = 100;
  other.generate.end = EndOfSequence::ignored;
  int of_other = 0;
  int since_other = 0;
  int most = 0;
  other.events.on_token = [&](int, const GeneratedToken&, std::string_view) {
    ++of_other;
    most = std::max(most, std::exchange(since_other, 0));
  };
  auto many = request_for(kAnswers, 0);
  std::vector<std::string> together;
  many.events.on_token = [&](int, const GeneratedToken&, std::string_view) { ++since_other; };
  many.events.on_end = [&](const RequestEnd& end) {
    for (const auto& one : end.answers) together.push_back(one.text);
  };
  scheduler.add(std::move(other));
  scheduler.add(std::move(many));
  while (scheduler.advance()) continue;
  EXPECT_EQ(together, alone);
  EXPECT_EQ(of_other, 100);
  EXPECT_GE(most, 1);
  EXPECT_LT(most, kAnswers) << "all tokens of a request at once";
}

TEST_F(GrammarTest, quotes_classes_and_comments_are_no_groups_and_no_repetitions) {
  const std::string text = "root ::= \"((((\\\"{9,1}\" [({\\]] # ((( {7,3}\n";
  const auto got = answer(1, with(text));
  EXPECT_EQ(got.text.substr(0, 10), "((((\"{9,1}");
}

}  // namespace
}  // namespace winnow
