// SPDX-License-Identifier: Apache-2.0
// Which bytes a grammar lets through, against libllama's grammars; and how many steps that takes.
#include "engine/grammar_walk.h"

#include <gtest/gtest.h>
#include <llama.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "engine/grammar.h"
#include "engine/grammar_builder.h"
#include "engine/model_impl.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"

namespace winnow::engine {
namespace {

GrammarWalk walk(const std::string& grammar) { return GrammarWalk(std::make_shared<const GrammarRules>(grammar)); }

bool reads(const std::string& grammar, const std::string& text) {
  auto at = walk(grammar);
  if (!at.allows(text)) return false;
  at.accept(text);
  return at.may_end();
}

class GrammarWalkTest : public testing::Test {
 public:
  GrammarWalkTest() {
    write_tiny_gguf(test::TinyModel(), folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
  }

 private:
  test::TempFolder folder_;

 protected:
  std::shared_ptr<const Model> model_;
};

/// A rule's alternatives over the letters a to c, which begin with a letter where they may call other rules, so that
/// nothing is left-recursive.
std::string random_alternatives(std::mt19937& random, int depth) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::string out;
  for (int n = 1 + pick(3); n > 0; --n) {
    out += std::string("\"") + "abc"[pick(3)] + "\"";
    for (int i = pick(3); i > 0; --i) {
      switch (pick(depth > 0 ? 6 : 5)) {
        case 0:
          out += " [ab]";
          break;
        case 1:
          out += " [^b]";
          break;
        case 2:
          out += " r" + std::to_string(pick(3));
          break;
        case 3:
          out += " \"ca\"";
          break;
        case 4:
          out += " .";
          break;
        default:
          out += " (" + random_alternatives(random, depth - 1) + ")";
      }
      const char* const times[] = {"", "", "*", "+", "?", "{2}", "{1,3}", "{2,}"};
      out += times[pick(8)];
    }
    if (n > 1) out += " | ";
  }
  return out;
}

TEST_F(GrammarWalkTest, the_same_tokens_may_come_as_in_libllamas_grammars) {
  std::mt19937 random(17);
  const auto& vocab = model_->impl().vocab;
  const auto tokens = model_->info().n_vocab;
  int allowed = 0;
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    std::string text = "root ::= " + random_alternatives(random, 2) + "\n";
    for (int r = 0; r < 3; ++r) text += "r" + std::to_string(r) + " ::= " + random_alternatives(random, 1) + "\n";
    Grammar own(vocab, text, EndOfSequence::stops);
    const std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)> other(
        llama_sampler_init_grammar(vocab.handle(), text.c_str(), "root"), llama_sampler_free);
    ASSERT_NE(other, nullptr) << text;
    for (int n = 0; n < 12; ++n) {
      own.begin_token();
      std::vector<Token> may_come;
      for (Token t = 0; t < tokens; ++t) {
        if (!vocab.has_text(t) && !vocab.ends(t)) continue;
        const auto first = vocab.ends(t) ? 0 : static_cast<unsigned char>(vocab.piece(t)[0]);
        if (first >= 0x80) continue;  // libllama takes overlong characters for others
        llama_token_data one{t, 0, 0};
        llama_token_data_array array{&one, 1, -1, false};
        llama_sampler_apply(other.get(), &array);
        const bool expected = !std::isinf(one.logit);
        ASSERT_EQ(own.allows(t), expected) << text << "token " << vocab.name(t);
        if (expected && !vocab.ends(t)) may_come.push_back(t);
      }
      if (may_come.empty()) break;
      const Token next = may_come[random() % may_come.size()];
      own.accept(next);
      llama_sampler_accept(other.get(), next);
      ++allowed;
    }
  }
  EXPECT_GT(allowed, 500);
}

TEST_F(GrammarWalkTest, characters_are_whole_and_written_as_short_as_can_be) {
  EXPECT_TRUE(reads("root ::= .", "\xF0\x9F\x98\x80"));
  EXPECT_TRUE(reads("root ::= [à-ü]", "é"));
  EXPECT_FALSE(reads("root ::= [à-ü]", "ÿ"));
  EXPECT_TRUE(reads("root ::= [\\u00e0-\\u07ff]", "\xDF\xBF"));
  EXPECT_FALSE(reads("root ::= [^a]", "a"));
  EXPECT_FALSE(reads("root ::= .", "\xC0\x80")) << "an overlong zero";
  EXPECT_FALSE(reads("root ::= .", "\xE0\x80\x80"));
  EXPECT_FALSE(reads("root ::= .", "\xED\xA0\x80")) << "a surrogate";
  EXPECT_FALSE(reads("root ::= .", "\xF4\x90\x80\x80")) << "beyond the last character";
  auto half = walk("root ::= \"é\"");
  EXPECT_TRUE(half.allows("\xC3"));
  half.accept("\xC3");
  EXPECT_FALSE(half.may_end());
  EXPECT_TRUE(half.allows("\xA9"));
  EXPECT_FALSE(half.allows("\xA8"));
}

TEST_F(GrammarWalkTest, each_range_of_characters_is_read_as_it_is) {
  std::mt19937 random(8);
  const auto some = [&] {
    const char32_t c = random() % (random() % 2 == 0 ? 0x900 : kLastCharacter) + 1;
    return c >= 0xD800 && c < 0xE000 ? 0xD7FF : c;
  };
  for (int i = 0; i < 400; ++i) {
    const auto a = some();
    const auto b = some();
    char range[64];
    std::snprintf(range, sizeof(range), "root ::= [\\U%08x-\\U%08x]", static_cast<unsigned>(std::min(a, b)),
                  static_cast<unsigned>(std::max(a, b)));
    for (const char32_t c :
         {a, b, std::min(a, b) + 1, std::max(a, b) - 1, std::min(a, b) - 1, std::max(a, b) + 1, some()}) {
      if (c == 0 || c > kLastCharacter || (c >= 0xD800 && c < 0xE000)) continue;
      std::string text;
      append_utf8(text, c);
      EXPECT_EQ(reads(range, text), std::min(a, b) <= c && c <= std::max(a, b))
          << range << " " << static_cast<unsigned>(c);
    }
  }
}

TEST_F(GrammarWalkTest, rules_may_begin_with_themselves_and_be_empty) {
  const std::string sums = "root ::= root \"+\" root | [0-9]+ | \"(\" root \")\" | \"\"\n";
  for (const char* const text : {"", "1", "1+2", "(1+2)+", "((12)+3)+(4)"}) EXPECT_TRUE(reads(sums, text)) << text;
  for (const char* const text : {"(", "1)", "1++)", "a"}) EXPECT_FALSE(reads(sums, text)) << text;
  const std::string nothing = "root ::= a a \"x\" a\na ::= b? b*\nb ::= \"\" | a | \"y\"\n";
  for (const char* const text : {"x", "yx", "yyyxy"}) EXPECT_TRUE(reads(nothing, text)) << text;
  EXPECT_FALSE(reads(nothing, "xx"));
}

std::string words(int count) {
  std::string out = "root ::= ";
  for (int i = 0; i < count; ++i)
    out += (i > 0 ? " | \"" : "\"") + std::string("item ") + std::to_string(i * 7919 % 100'003) + ".\"";
  return out;
}

/// JSON whose arrays can be read in `kinds` ways each.
std::string arrays(int kinds) {
  std::string out = "root ::= v\nv ::= \"0\"";
  for (int i = 0; i < kinds; ++i) out += " | a" + std::to_string(i);
  for (int i = 0; i < kinds; ++i) out += "\na" + std::to_string(i) + " ::= \"[\" (v (\",\" v)*)? \"]\"";
  return out;
}

TEST_F(GrammarWalkTest, ways_to_read_a_text_do_not_multiply) {
  const auto steps = [](const std::string& grammar, const std::string& text) {
    auto at = walk(grammar);
    const auto before = at.steps();
    at.accept(text);
    return at.steps() - before;
  };
  for (const int kinds : {2, 60}) {
    const auto grammar = arrays(kinds);
    const auto few = steps(grammar, std::string(50, '['));
    EXPECT_LE(steps(grammar, std::string(500, '[')), 11 * few) << "each byte costs the same";
    std::string nested(100, '[');
    nested += "0,0";
    nested.append(100, ']');
    EXPECT_TRUE(reads(grammar, nested));
  }
  EXPECT_LE(steps(arrays(60), std::string(100, '[')), 40 * steps(arrays(2), std::string(100, '[')));
}

TEST_F(GrammarWalkTest, all_texts_of_one_place_share_their_beginnings) {
  auto at = walk(words(3000));
  const auto before = at.steps();
  int may_come = 0;
  for (int i = 0; i < 100'000; ++i) may_come += at.allows("item " + std::to_string(i)) ? 1 : 0;
  EXPECT_GE(may_come, 3000);
  EXPECT_LE(at.steps() - before, Grammar::kMostSteps) << "100,000 tokens of a vocabulary, looked at one by one";
}

TEST_F(GrammarWalkTest, frames_are_given_back) {
  auto at = walk("root ::= item*\nitem ::= \"(\" item* \")\"");
  std::int64_t first = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto before = at.steps();
    at.accept("((())())");
    if (i == 10) first = at.steps() - before;
    if (i > 10) {
      EXPECT_EQ(at.steps() - before, first);
    }
  }
  EXPECT_TRUE(at.may_end());
}

TEST_F(GrammarWalkTest, a_text_of_too_many_ways_is_given_up_after_its_steps) {
  auto at = walk("root ::= root root | [a-z]");
  at.set_limit(10'000);
  EXPECT_THROW(at.accept(std::string(1000, 'a')), UsageError);
  EXPECT_LE(at.steps(), 10'000 + 1'000) << "what reads one byte is counted at once";
}

}  // namespace
}  // namespace winnow::engine
