// SPDX-License-Identifier: Apache-2.0
// Thinking in answers, compared with a slow reference that reads all tokens of an answer again after each token, also
// with a grammar.
#include "engine/thinking.h"

#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/answering.h"
#include "engine/model_impl.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow::engine {
namespace {

using Tokens = std::vector<Token>;

bool ends_with(const Tokens& tokens, std::size_t size, const Tokens& part) {
  return size >= part.size() &&
         std::equal(part.begin(), part.end(), tokens.begin() + static_cast<std::ptrdiff_t>(size - part.size()));
}

/// State after some tokens of an answer.
struct State {
  bool goes_on = false;
  int tokens = 0;          ///< tokens of the thinking
  std::size_t forced = 0;  ///< forced tokens of the end tag
  bool must_end = false;
};

/// A tag is searched for after the end of the last one.
State reference(const ThinkingOptions& options, const Tokens& answer) {
  State out{.goes_on = options.begins == ThinkingBegin::prompt};
  int counted = 0;
  out.must_end = out.goes_on && options.most_tokens == 0;
  Tokens since;
  for (const Token token : answer) {
    since.push_back(token);
    if (!out.goes_on) {
      if (!ends_with(since, since.size(), options.start)) continue;
      out = {true, out.tokens, 0, options.most_tokens == 0};
      counted = 0;
      since.clear();
      continue;
    }
    if (out.must_end) {
      if (++out.forced == options.ends.front().size()) {
        out = {false, out.tokens};
        since.clear();
      }
      continue;
    }
    ++counted;
    ++out.tokens;
    const auto end =
        std::ranges::find_if(options.ends, [&](const Tokens& tag) { return ends_with(since, since.size(), tag); });
    if (end != options.ends.end()) {
      out = {false, out.tokens - static_cast<int>(end->size())};
      since.clear();
    } else if (counted == options.most_tokens) {
      out.must_end = true;
    }
  }
  return out;
}

class ThinkingTest : public testing::Test {
 public:
  ThinkingTest() {
    write_tiny_gguf(test::TinyModel(), folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    for (Token token = 0; token < model_->info().n_vocab; ++token) {
      if (const auto piece = model_->vocab().text(token); piece.size() == 1) of_byte_.try_emplace(piece.front(), token);
    }
  }

  Tokens tokens_of(const std::string& text) const {
    Tokens out;
    for (const char c : text) out.push_back(of_byte_.at(c));
    return out;
  }

  Token token_of(char byte) const { return of_byte_.at(byte); }

  /// Generates an answer with random tokens wherever the choice is free.
  Generation answer(GenerateOptions options, unsigned seed) const {
    std::mt19937 random(seed);
    options.sampling.temperature = 1;
    options.sampling.seed = seed;
    check(options, *model_);
    Answering answering(*model_, options, grammar_of(options, *model_), {}, 0);
    Sampler::Candidates candidates;
    std::vector<float> logits(static_cast<std::size_t>(model_->info().n_vocab));
    while (!answering.has_ended()) {
      for (auto& logit : logits) logit = std::normal_distribution<float>(0, 2)(random);
      for (Token token = 0; token < 3; ++token)
        logits[static_cast<std::size_t>(token)] = -100;  // no token ends the answer early
      answering.take(logits, candidates);
    }
    return answering.finish();
  }

  GenerateOptions options(std::optional<int> most, int tokens) const {
    GenerateOptions out;
    out.max_tokens = tokens;
    out.thinking = {tokens_of("<t>"), {tokens_of("</t>"), tokens_of("!")}, ThinkingBegin::prompt, most};
    return out;
  }

 private:
  test::TempFolder folder_;
  std::shared_ptr<const Model> model_;
  std::map<char, Token> of_byte_;

 protected:
  const Model& model() const { return *model_; }
};

TEST_F(ThinkingTest, is_what_the_reference_says_after_each_token) {
  std::mt19937 random(1);
  const auto below = [&random](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  int forced = 0;
  for (int i = 0; i < 300; ++i) {
    ThinkingOptions options{tokens_of("ab"), {tokens_of("ccd"), tokens_of("b")}, ThinkingBegin::answer, {}};
    if (below(2) == 0) options.begins = ThinkingBegin::prompt;
    if (below(4) > 0) options.most_tokens = below(6);
    Thinking thinking(model().impl().vocab, options);
    Tokens answer;
    for (int step = 0; step < 60; ++step) {
      const auto expected = reference(options, answer);
      ASSERT_EQ(thinking.goes_on(), expected.goes_on) << i << " " << step;
      const auto token = thinking.forced();
      ASSERT_EQ(token.has_value(), expected.must_end) << i << " " << step;
      if (token) {
        ASSERT_EQ(*token, options.ends.front()[expected.forced]);
        ++forced;
      }
      if (!expected.must_end) {
        ASSERT_EQ(thinking.tokens(), expected.tokens) << i << " " << step;
      }
      answer.push_back(token.value_or(tokens_of("abcd")[static_cast<std::size_t>(below(4))]));
      thinking.accept(answer.back());
    }
  }
  EXPECT_GT(forced, 1000);
}

TEST_F(ThinkingTest, ends_after_a_whole_character) {
  const ThinkingOptions options{tokens_of("<"), {tokens_of(">")}, ThinkingBegin::prompt, 2};
  Thinking thinking(model().impl().vocab, options);
  for (const char byte : std::string("a\xD0")) thinking.accept(tokens_of(std::string(1, byte)).front());
  EXPECT_FALSE(thinking.forced().has_value());
  EXPECT_TRUE(thinking.goes_on());
}

TEST_F(ThinkingTest, has_its_tokens_and_the_answer_goes_on) {
  auto letters = options(9, 40);
  for (const char letter : std::string("ab")) letters.sampling.logit_bias.emplace_back(token_of(letter), 100.0F);
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto got = answer(letters, seed);
    EXPECT_EQ(got.tokens.size(), 40);
    EXPECT_EQ(got.thinking_tokens, 9);
    EXPECT_EQ(got.text.find("</t>"), 9);
    EXPECT_EQ(got.text.find_first_not_of("ab", 13), std::string::npos);
  }
}

TEST_F(ThinkingTest, counts_without_a_limit_and_forces_nothing) {
  auto free = options({}, 30);
  auto unknown = free;
  unknown.thinking = {};
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto got = answer(free, seed);
    EXPECT_EQ(got.text, answer(unknown, seed).text);
    EXPECT_EQ(answer(unknown, seed).thinking_tokens, 0);
    EXPECT_GT(got.thinking_tokens, 0);
  }
}

TEST_F(ThinkingTest, ends_within_a_grammar) {
  auto bound = options(7, 100);
  bound.grammar = R"(root ::= [a-z]* "</t>" [0-9] [0-9])";
  bound.sampling.logit_bias.emplace_back(token_of('<'), -100.0F);  // the thinking ends only at its limit
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto got = answer(bound, seed);
    EXPECT_EQ(got.finish, FinishReason::stop);
    EXPECT_EQ(got.thinking_tokens, 7);
    EXPECT_EQ(got.tokens.size(), 7 + 4 + 2);
    EXPECT_EQ(got.text.size() - 6, got.text.find("</t>"));
  }
}

TEST_F(ThinkingTest, goes_on_where_a_grammar_does_not_let_it_end) {
  auto bound = options(7, 100);
  bound.grammar = "root ::= [a-z]{20}";
  EXPECT_EQ(answer(bound, 1).text.size(), 20);
}

TEST_F(ThinkingTest, has_no_triggers_of_a_lazy_grammar) {
  auto bound = options(12, 80);
  bound.thinking.ends = {tokens_of("/")};
  bound.grammar = R"(root ::= "x" [0-9]{3})";
  bound.grammar_triggers = {"x"};
  for (const char letter : std::string("x/")) bound.sampling.logit_bias.emplace_back(token_of(letter), 4.0F);
  bool has_trigger = false;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto text = answer(bound, seed).text;
    const auto end = text.find('/');
    ASSERT_NE(end, std::string::npos);
    has_trigger = has_trigger || text.substr(0, end).find('x') != std::string::npos;
    const auto begin = text.find('x', end);
    if (begin == std::string::npos) continue;
    EXPECT_EQ(text.substr(begin + 1).find_first_not_of("0123456789"), std::string::npos) << text;
  }
  EXPECT_TRUE(has_trigger) << "the thinking has triggers that count for nothing";
}

TEST_F(ThinkingTest, end_may_be_a_trigger) {
  auto bound = options(5, 80);
  bound.thinking.ends = {tokens_of("<c>")};
  bound.grammar = R"(root ::= "<c>" [0-9]{3})";
  bound.grammar_triggers = {"<c>"};
  for (unsigned seed = 0; seed < 10; ++seed) {
    const auto text = answer(bound, seed).text;
    EXPECT_EQ(text.size(), text.find("<c>") + 6) << text;
  }
}

}  // namespace
}  // namespace winnow::engine
