// SPDX-License-Identifier: Apache-2.0
// Tokens that may come next and their frequencies, for random combinations of all options, compared with a slow
// reference that follows the definitions of OpenAI's API and vLLM.
#include "engine/sampler.h"

#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "engine/answering.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow::engine {
namespace {

/// Input of sampling one token.
struct Case {
  SamplingOptions options;
  std::vector<float> logits;
  std::vector<Token> prompt;
  std::vector<Token> answer;  ///< the tokens generated so far
  std::vector<Token> banned;
  std::string grammar;
  std::vector<Token> refused;  ///< tokens that the grammar refuses
  std::set<std::string> used;  ///< options that have an effect
};

std::vector<long double> changed_logits(const Case& c) {
  std::vector<long double> out(c.logits.begin(), c.logits.end());
  for (const auto& [token, bias] : c.options.logit_bias) out[token] += bias;
  std::map<Token, int> in_answer;
  for (const Token token : c.answer) ++in_answer[token];
  std::set<Token> anywhere(c.prompt.begin(), c.prompt.end());
  anywhere.insert(c.answer.begin(), c.answer.end());
  const long double repeat = c.options.repeat_penalty;
  for (const Token token : anywhere) out[token] = out[token] > 0 ? out[token] / repeat : out[token] * repeat;
  for (const auto& [token, times] : in_answer)
    out[token] -= static_cast<long double>(c.options.frequency_penalty) * times + c.options.presence_penalty;
  return out;
}

/// Probabilities of the tokens that may come next. Equal ones are ordered by token.
std::map<Token, double> reference(const Case& c) {
  const auto logits = changed_logits(c);
  std::vector<Token> order;
  for (Token t = 0; t < static_cast<Token>(logits.size()); ++t) {
    const auto has = [t](const std::vector<Token>& tokens) { return std::count(tokens.begin(), tokens.end(), t) > 0; };
    if (!has(c.banned) && !has(c.refused)) order.push_back(t);
  }
  std::stable_sort(order.begin(), order.end(), [&](Token a, Token b) { return logits[a] > logits[b]; });
  if (order.empty()) return {};
  if (c.options.temperature < 1e-5F) return {{order.front(), 1.0}};
  const long double largest = logits[order.front()];
  const auto weight = [&](Token t) { return std::exp((logits[t] - largest) / c.options.temperature); };
  std::erase_if(order, [&](Token t) { return weight(t) < c.options.min_p; });
  if (c.options.top_k > 0) order.resize(std::min<std::size_t>(order.size(), c.options.top_k));
  long double all = 0;
  for (const Token t : order) all += weight(t);
  std::map<Token, double> out;
  long double sum = 0;
  for (const Token t : order) {
    out[t] = static_cast<double>(weight(t));
    sum += weight(t) / all;
    if (sum >= c.options.top_p && c.options.top_p < 1) break;
  }
  double kept = 0;
  for (const auto& [t, w] : out) kept += w;
  for (auto& [t, w] : out) w /= kept;
  return out;
}

class SamplerTest : public testing::Test {
 public:
  SamplerTest() {
    write_tiny_gguf(test::TinyModel(), folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
  }

  std::optional<Token> sample(const Case& c, std::uint32_t seed) {
    auto options = c.options;
    options.seed = seed;
    GenerateOptions generate;
    generate.grammar = c.grammar;
    Sampler sampler(options, grammar_of(generate, *model_), c.prompt, 0);
    Sampler::Candidates candidates;
    // Makes the sampler choose the answer's tokens.
    for (const Token token : c.answer) {
      std::vector<Token> others;
      for (Token t = 0; t < model_->info().n_vocab; ++t) {
        if (t != token) others.push_back(t);
      }
      sampler.sample(c.logits, others, candidates);
    }
    return sampler.sample(c.logits, c.banned, candidates);
  }

  void expect_as_reference(const Case& c, int draws) {
    const auto expected = reference(c);
    std::map<Token, int> drawn;
    for (int i = 0; i < draws; ++i) {
      const auto token = sample(c, static_cast<std::uint32_t>(i) * 7919 + 13);
      ASSERT_EQ(token.has_value(), !expected.empty());
      if (!token) return;
      ASSERT_TRUE(expected.contains(*token)) << "token " << *token << " cannot come";
      ++drawn[*token];
    }
    for (const auto& [token, p] : expected) {
      const double sigma = std::sqrt(draws * p * (1 - p));
      EXPECT_LE(std::abs(drawn[token] - draws * p), 6 * sigma + 1) << "token " << token << " of probability " << p;
    }
  }

  static bool is_between(const std::string& piece, char first, char last) {
    return piece.size() == 1 && first <= piece[0] && piece[0] <= last;
  }

  Case random_case(std::mt19937& random) {
    const auto some = [&](double least, double most) {
      return std::uniform_real_distribution<double>(least, most)(random);
    };
    const auto token = [&] { return static_cast<Token>(random() % 40); };
    Case c;
    const auto maybe = [&](const char* name, const auto& change) {
      if (random() % 2 == 0) return;
      change();
      c.used.insert(name);
    };
    for (int t = 0; t < model_->info().n_vocab; ++t) c.logits.push_back(static_cast<float>(some(-4, t < 40 ? 4 : -3)));
    c.options.temperature = 0;
    c.options.top_k = 0;
    c.options.top_p = 1;
    c.options.min_p = 0;
    for (int i = 0; i < 30; ++i) c.prompt.push_back(token());
    maybe("grammar", [&] {
      c.grammar = "root ::= [\\x01-\\x10]*";
      for (Token t = 0; t < model_->info().n_vocab; ++t) {
        if (!(model_->vocab().ends(t) || is_between(model_->vocab().text(t), '\x01', '\x10'))) c.refused.push_back(t);
      }
    });
    maybe("answer", [&] {
      for (int i = 0; i < 100; ++i) c.answer.push_back(4 + token() % 16);  // allowed by the grammar
    });
    maybe("temperature", [&] { c.options.temperature = static_cast<float>(some(0.3, 2)); });
    maybe("top_k", [&] { c.options.top_k = 1 + static_cast<int>(random() % 20); });
    maybe("top_p", [&] { c.options.top_p = static_cast<float>(some(0, 1)); });
    maybe("min_p", [&] { c.options.min_p = static_cast<float>(some(0, 0.5)); });
    maybe("repeat", [&] { c.options.repeat_penalty = static_cast<float>(some(0.5, 2)); });
    maybe("presence", [&] { c.options.presence_penalty = static_cast<float>(some(-2, 2)); });
    maybe("frequency", [&] { c.options.frequency_penalty = static_cast<float>(some(-0.5, 0.5)); });
    maybe("logit_bias", [&] {
      for (int i = 0; i < 8; ++i) c.options.logit_bias.emplace_back(token(), static_cast<float>(some(-5, 5)));
    });
    maybe("banned", [&] {
      for (int i = 0; i < 8; ++i) c.banned.push_back(token());
    });
    return c;
  }

 private:
  test::TempFolder folder_;

 protected:
  std::shared_ptr<const Model> model_;
};

TEST_F(SamplerTest, tokens_come_as_often_as_the_definitions_say_for_all_options_together) {
  std::mt19937 random(41);
  std::map<std::pair<std::string, std::string>, int> pairs;
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    const auto c = random_case(random);
    expect_as_reference(c, c.options.temperature > 0 ? 150 : 1);
    for (const auto& a : c.used) {
      for (const auto& b : c.used) ++pairs[{a, b}];
    }
  }
  EXPECT_EQ(pairs.size(), 11U * 11U);
  for (const auto& [pair, times] : pairs) EXPECT_GE(times, 20) << pair.first << " with " << pair.second;
}

TEST_F(SamplerTest, each_token_of_a_long_answer_and_of_the_prompt_counts) {
  Case c;
  c.logits.assign(model_->info().n_vocab, 0.0F);
  c.logits[7] = 50;
  c.logits[9] = 49;
  c.answer.assign(300, 8);
  c.answer[0] = 7;
  c.options.presence_penalty = 2;
  EXPECT_EQ(sample(c, 1), 9) << "the first of 300 tokens counts";
  c.options.presence_penalty = 0;
  c.options.frequency_penalty = 0.5;
  EXPECT_EQ(sample(c, 1), 7) << "once costs half";
  c.answer[1] = c.answer[2] = c.answer[3] = 7;
  EXPECT_EQ(sample(c, 1), 9) << "four times cost 2";
  c.answer.clear();
  c.prompt.assign(1000, 3);
  c.prompt[0] = 7;
  EXPECT_EQ(sample(c, 1), 7) << "the prompt is not the answer";
  c.options.repeat_penalty = 1.1F;
  EXPECT_EQ(sample(c, 1), 9) << "the repeat penalty looks at the prompt";
}

TEST_F(SamplerTest, temperatures_below_1e_5_are_greedy) {
  std::mt19937 random(5);
  for (const float temperature : {0.0F, 1e-45F, 1e-38F, 3e-30F, 9e-6F}) {
    auto c = random_case(random);
    c.banned.clear();
    c.grammar.clear();
    c.options.temperature = temperature;
    const auto logits = changed_logits(c);
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    for (std::uint32_t seed = 0; seed < 20; ++seed) EXPECT_EQ(sample(c, seed), best) << temperature;
  }
}

TEST_F(SamplerTest, no_finite_value_of_any_option_overflows) {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kLeast = std::numeric_limits<float>::denorm_min();
  std::mt19937 random(6);
  const auto one_of = [&](std::initializer_list<float> all) { return all.begin()[random() % all.size()]; };
  for (int i = 0; i < 2000 && !HasFailure(); ++i) {
    auto c = random_case(random);
    c.grammar.clear();
    c.options.temperature = one_of({0, kLeast, 1e-5F, 1e-3F, 1, 1e30F, kMost});
    c.options.repeat_penalty = one_of({kLeast, 1e-30F, 1, 1e30F, kMost});
    c.options.presence_penalty = one_of({-kMost, -1, 0, 1e30F, kMost});
    c.options.frequency_penalty = one_of({-kMost, 0, kLeast, kMost});
    c.options.logit_bias = {{1, one_of({-kMost, 0, kMost})}, {2, one_of({-kMost, kLeast, kMost})}, {1, kMost}};
    c.options.min_p = one_of({0, kLeast, 0.1F, 1});
    c.options.top_p = one_of({0, kLeast, 0.5F, 1});
    c.logits[3] = one_of({-kMost, 0, kMost});
    const auto token = sample(c, random());
    ASSERT_TRUE(token.has_value());
    ASSERT_TRUE(*token >= 0 && *token < model_->info().n_vocab) << *token;
    EXPECT_EQ(std::count(c.banned.begin(), c.banned.end(), *token), 0);
  }
}

TEST_F(SamplerTest, nothing_is_chosen_where_all_tokens_are_banned) {
  Case c;
  c.logits.assign(model_->info().n_vocab, 0.0F);
  for (Token t = 0; t < model_->info().n_vocab; ++t) c.banned.push_back(t);
  EXPECT_FALSE(sample(c, 1).has_value());
  c.options.temperature = 1;
  EXPECT_FALSE(sample(c, 1).has_value());
}

}  // namespace
}  // namespace winnow::engine
