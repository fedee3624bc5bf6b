// SPDX-License-Identifier: Apache-2.0
// Bytes that a grammar allows, compared with libllama's grammars, and the number of steps.
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

GenerateOptions with(const std::string& grammar, EndOfSequence end = EndOfSequence::stops) {
  GenerateOptions out;
  out.grammar = grammar;
  out.end = end;
  return out;
}

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

  Token token_of(const std::string& text) const {
    Token out = 0;
    while (model_->vocab().text(out) != text) ++out;
    return out;
  }

 private:
  test::TempFolder folder_;

 protected:
  std::shared_ptr<const Model> model_;
};

/// Alternatives of a rule over the letters a to c. An alternative that may call other rules begins with a letter, so
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
    Grammar own(vocab, with(text, EndOfSequence::stops));
    const std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)> other(
        llama_sampler_init_grammar(vocab.handle(), text.c_str(), "root"), llama_sampler_free);
    ASSERT_NE(other, nullptr) << text;
    for (int n = 0; n < 12; ++n) {
      own.begin_token();
      std::vector<Token> may_come;
      for (Token t = 0; t < tokens; ++t) {
        if (!vocab.has_text(t) && !vocab.ends(t)) continue;
        const auto first = vocab.ends(t) ? 0 : static_cast<unsigned char>(vocab.text(t)[0]);
        if (first >= 0x80) continue;  // libllama decodes overlong characters as other characters
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

TEST_F(GrammarWalkTest, lazy_grammars_begin_where_libllamas_do) {
  struct Case {
    std::string grammar;
    std::string trigger;
  };
  const Case cases[] = {{"root ::= \"ab\" [a-c]+ \"d\"", "ab"},
                        {"root ::= \"a\" \"b\"* \"c\"", "^[a-c]*d(a)"},
                        {"root ::= (\"ca\" | \"cb\") [a-d]{3}", "c[ab]"},
                        {"root ::= \"d\" \"d\"", "b+(d)"}};
  std::mt19937 random(23);
  const auto& vocab = model_->impl().vocab;
  std::vector<Token> letters;
  for (Token t = 0; t < model_->info().n_vocab; ++t) {
    const bool has_others = vocab.text(t).find_first_not_of("abcd") != std::string::npos;
    if (vocab.has_text(t) && !vocab.text(t).empty() && !has_others) letters.push_back(t);
  }
  ASSERT_GE(letters.size(), 4);
  int begun = 0;
  for (int i = 0; i < 200; ++i) {
    const auto& [grammar, trigger] = cases[i % 4];
    auto options = with(grammar);
    options.grammar_triggers = {trigger};
    Grammar own(vocab, options);
    const char* patterns[] = {trigger.c_str()};
    const std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)> other(
        llama_sampler_init_grammar_lazy_patterns(vocab.handle(), grammar.c_str(), "root", patterns, 1, nullptr, 0),
        llama_sampler_free);
    for (int n = 0; n < 30; ++n) {
      std::vector<Token> may_come;
      if (!own.is_waiting()) own.begin_token();
      for (const Token t : letters) {
        llama_token_data one{t, 0, 0};
        llama_token_data_array array{&one, 1, -1, false};
        llama_sampler_apply(other.get(), &array);
        const bool expected = !std::isinf(one.logit);
        ASSERT_EQ(own.is_waiting() || own.allows(t), expected) << grammar << " token " << vocab.text(t);
        if (expected) may_come.push_back(t);
      }
      if (may_come.empty()) break;
      const Token next = may_come[random() % may_come.size()];
      own.accept(next);
      llama_sampler_accept(other.get(), next);
    }
    begun += own.is_waiting() ? 0 : 1;
  }
  EXPECT_GT(begun, 50);
}

TEST_F(GrammarWalkTest, a_trigger_that_the_answer_has_outgrown_is_not_found_any_more) {
  auto options = with("root ::= \"b\" \"c\"");
  const auto& vocab = model_->impl().vocab;
  const Token a = token_of("a");
  const Token b = token_of("b");
  const auto waits_after = [&](const char* trigger, int many) {
    options.grammar_triggers = {trigger};
    Grammar grammar(vocab, options);
    for (int i = 0; i < many; ++i) grammar.accept(a);
    grammar.accept(b);
    return grammar.is_waiting();
  };
  EXPECT_FALSE(waits_after("^a+(b)", 200));
  EXPECT_TRUE(waits_after("^a+(b)", 300)) << "the beginning is out of sight";
  EXPECT_FALSE(waits_after("a+(b)", 3000));
  options.grammar_triggers = {"("};
  EXPECT_THROW(Grammar(vocab, options), UsageError);
}

TEST_F(GrammarWalkTest, a_prefix_has_been_read_before_the_answer) {
  auto options = with("root ::= \"<think>\" [a-b]+");
  options.grammar_prefix = "<think>";
  const auto& vocab = model_->impl().vocab;
  Grammar grammar(vocab, options);
  grammar.begin_token();
  EXPECT_TRUE(grammar.allows(token_of("a")));
  EXPECT_FALSE(grammar.allows(token_of("<")));
  options.grammar_prefix = "<talk>";
  EXPECT_THROW(Grammar(vocab, options), UsageError);
}

TEST_F(GrammarWalkTest, preserved_tokens_are_read_by_their_names) {
  const auto& vocab = model_->impl().vocab;
  const Token control = vocab.end_of_text();
  const std::string name = vocab.name(control);
  ASSERT_FALSE(name.empty());
  auto options = with("root ::= \"" + name + "\" \"a\"", EndOfSequence::ignored);
  EXPECT_FALSE(Grammar(vocab, options).may_begin(control));
  const Token other = vocab.beginning_of_text();
  options.preserved_tokens = {other};
  options.grammar = "root ::= \"" + vocab.name(other) + "\" \"a\"";
  Grammar grammar(vocab, options);
  grammar.begin_token();
  ASSERT_TRUE(grammar.allows(other));
  grammar.accept(other);
  grammar.begin_token();
  EXPECT_TRUE(grammar.allows(token_of("a")));
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

/// A grammar of JSON in which each array can be parsed in `kinds` ways.
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
