// SPDX-License-Identifier: Apache-2.0
// Texts are split at special tokens as libllama does: compared with a slow implementation here, and with libllama.
#include "model/special_tokens.h"

#include <gguf.h>
#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <set>

#include "model/model_file.h"
#include "model/vocab.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"

namespace winnow::model {
namespace {

using Rng = std::mt19937;

int up_to(Rng& rng, int most) { return std::uniform_int_distribution<int>(0, most)(rng); }

std::string random_text(Rng& rng, std::string_view letters, int length) {
  std::string out;
  for (int i = 0; i < length; ++i) out += letters[up_to(rng, static_cast<int>(letters.size()) - 1)];
  return out;
}

std::vector<SpecialToken> by_length(std::vector<SpecialToken> tokens) {
  std::ranges::stable_sort(tokens, [](const auto& a, const auto& b) { return a.name.size() > b.name.size(); });
  return tokens;
}

/// Splits the text for one token after the other. Each letter becomes -1 if it is in no token, the token at the token's
/// first letter, and -2 at its other letters and at white space that it takes.
std::vector<int> slow_split(const std::vector<SpecialToken>& tokens, const std::string& text) {
  constexpr int kTaken = -2;
  std::vector<int> out(text.size(), -1);
  for (const auto& token : tokens) {
    for (std::size_t at = 0; at + token.name.size() <= text.size(); ++at) {
      const auto begin = out.begin() + static_cast<std::ptrdiff_t>(at);
      const auto end = begin + static_cast<std::ptrdiff_t>(token.name.size());
      if (text.compare(at, token.name.size(), token.name) != 0) continue;
      if (std::any_of(begin, end, [](int one) { return one != -1; })) continue;
      std::fill(begin, end, kTaken);
      *begin = token.token;
      const auto is_free_space = [&](std::size_t i) { return out[i] == -1 && std::isspace(text[i]) != 0; };
      for (std::size_t i = at; token.takes_space_before && i > 0 && is_free_space(i - 1); --i) out[i - 1] = kTaken;
      for (std::size_t i = at + token.name.size(); token.takes_space_after && i < text.size() && is_free_space(i); ++i)
        out[i] = kTaken;
    }
  }
  return out;
}

std::vector<std::pair<int, std::string>> segments_of(const std::vector<int>& letters, const std::string& text) {
  std::vector<std::pair<int, std::string>> out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (letters[i] >= 0) out.emplace_back(letters[i], "");
    if (letters[i] != -1) continue;
    if (i == 0 || letters[i - 1] != -1) out.emplace_back(-1, "");
    out.back().second += text[i];
  }
  return out;
}

std::vector<std::pair<int, std::string>> segments_of(const std::vector<TextSegment>& segments) {
  std::vector<std::pair<int, std::string>> out;
  for (const auto& segment : segments)
    out.emplace_back(segment.token, segment.token < 0 ? std::string(segment.text) : "");
  return out;
}

std::string joined(const std::vector<TextSegment>& segments) {
  std::string out;
  for (const auto& segment : segments) out += segment.text;
  return out;
}

/// Few letters and short names, so that many names overlap, touch or contain others.
TEST(SpecialTokens, are_those_that_are_found_one_after_the_other) {
  Rng rng(41);
  for (int round = 0; round < 4000; ++round) {
    std::vector<SpecialToken> tokens;
    const int count = 1 + up_to(rng, 5);
    for (int i = 0; i < count; ++i)
      tokens.push_back({i, random_text(rng, "ab ", 1 + up_to(rng, 3)), up_to(rng, 3) == 0, up_to(rng, 3) == 0});
    tokens = by_length(tokens);
    const std::string text = random_text(rng, "ab c", up_to(rng, 40));
    const auto segments = SpecialTokens(tokens).split(text);
    ASSERT_EQ(segments_of(segments), segments_of(slow_split(tokens, text), text)) << "round " << round << ": " << text;
    ASSERT_EQ(joined(segments), text);
  }
}

TEST(SpecialTokens, text_without_any_is_one_piece) {
  const SpecialTokens tokens({{7, "<x>"}});
  EXPECT_TRUE(tokens.split("").empty());
  EXPECT_EQ(segments_of(tokens.split("<x <x")), (std::vector<std::pair<int, std::string>>{{-1, "<x <x"}}));
  EXPECT_EQ(segments_of(SpecialTokens({}).split("<x>")), (std::vector<std::pair<int, std::string>>{{-1, "<x>"}}));
}

/// libllama walks from the first segment for each match, which would be about 10^12 steps here.
TEST(SpecialTokens, very_many_are_found) {
  constexpr std::size_t kMany = 1'000'000;
  std::string text;
  for (std::size_t i = 0; i < kMany; ++i) text += i % 2 == 0 ? "<x>" : "<y> ";
  const auto segments = SpecialTokens({{7, "<x>"}, {8, "<y>"}}).split(text);
  EXPECT_EQ(segments.size(), kMany + kMany / 2);
}

std::vector<Token> by_libllama(const Vocab& vocab, const std::string& text, ControlTokens control) {
  std::vector<Token> out(4 * text.size() + 64);
  out.resize(llama_tokenize(vocab.handle(), text.data(), static_cast<int>(text.size()), out.data(),
                            static_cast<int>(out.size()), false, control == ControlTokens::parsed));
  return out;
}

/// Names, parts of names and other letters, so that names begin, end and overlap everywhere. Longer than the texts that
/// winnow passes to libllama as a whole.
std::string text_of(Rng& rng, const std::vector<std::string>& names, std::string_view letters) {
  std::string out;
  while (out.size() <= 4096) {
    const std::string& name = names[up_to(rng, static_cast<int>(names.size()) - 1)];
    const int kind = up_to(rng, 3);
    if (kind == 0) out += random_text(rng, letters, up_to(rng, 6));
    if (kind == 1) out += name.substr(up_to(rng, static_cast<int>(name.size()) - 1));
    if (kind >= 2) out += name;
  }
  return out;
}

void expect_libllamas(const Vocab& vocab, const std::vector<std::string>& names, std::string_view letters) {
  Rng rng(5);
  for (int round = 0; round < 50; ++round) {
    const std::string text = text_of(rng, names, letters);
    for (const auto control : {ControlTokens::parsed, ControlTokens::as_text})
      ASSERT_EQ(vocab.tokenize(text, control), by_libllama(vocab, text, control)) << "round " << round << ": " << text;
  }
}

/// Control tokens and user-defined tokens of few letters.
TEST(SpecialTokens, tokens_are_libllamas_where_names_overlap) {
  const test::TempFolder folder;
  test::TinyModel tiny;
  tiny.n_vocab = 300;
  test::write_tiny_gguf(tiny, folder / "tiny.gguf");
  const ModelFile file(folder / "tiny.gguf");
  constexpr int kControl = 3;
  constexpr int kDefined = 4;
  const auto tokens = gguf_find_key(file.gguf(), "tokenizer.ggml.tokens");
  std::vector<std::string> names;
  std::vector<std::int32_t> types(300, 6);
  types[0] = 2;
  types[1] = types[2] = kControl;
  Rng rng(3);
  std::set<std::string> taken;
  for (int i = 0; i < 300; ++i) {
    names.emplace_back(gguf_get_arr_str(file.gguf(), tokens, i));
    if (i < 259) continue;
    do names.back() = random_text(rng, "ab <", 2 + up_to(rng, 5));
    while (!taken.insert(names.back()).second);
    types[i] = i % 2 == 0 ? kControl : kDefined;
  }
  std::vector<const char*> pointers;
  for (const auto& name : names) pointers.push_back(name.c_str());
  gguf_set_arr_str(file.gguf(), "tokenizer.ggml.tokens", pointers.data(), pointers.size());
  gguf_set_arr_data(file.gguf(), "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
  expect_libllamas(Vocab(file), {names.begin() + 259, names.end()}, "ab <>c\n");
}

std::vector<std::string> control_names(const Vocab& vocab) {
  std::vector<std::string> out;
  for (Token token = 0; token < llama_vocab_n_tokens(vocab.handle()); ++token) {
    if (!vocab.has_text(token)) out.push_back(vocab.name(token));
  }
  return out;
}

TEST(SpecialTokens, tokens_are_libllamas_with_a_real_model) {
  const auto path = test::real_model();
  if (!path) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
  const Vocab vocab{ModelFile(*path)};
  std::vector<std::string> names = control_names(vocab);
  ASSERT_GT(names.size(), 2U);
  names.insert(names.end(), {"hello", " world", "\n", "  "});
  expect_libllamas(vocab, names, "ab <|>_1\xc3\xa9\n");
}

/// A text of alternating template and input parts.
struct Written {
  MarkedText text;
  std::string by_template;          ///< the template's parts alone
  std::vector<std::size_t> places;  ///< beginnings of input
};

Written written(Rng& rng, const std::vector<std::string>& of_template, const std::vector<std::string>& of_input) {
  Written out;
  for (int part = 0; part < 9; ++part) {
    const auto& words = part % 2 == 0 ? of_template : of_input;
    std::string more;
    for (int i = up_to(rng, 4); i >= 0; --i) more += words[up_to(rng, static_cast<int>(words.size()) - 1)];
    if (part % 2 == 0) {
      out.text.append_template(more);
      out.by_template += more;
    } else {
      out.places.push_back(out.text.text.size());
      out.text.append_input(more);
    }
  }
  return out;
}

TEST(MarkedText, input_is_what_was_appended_as_such) {
  MarkedText text;
  text.append_input("a");
  text.append_input("bc");
  text.append_template("");
  text.append_input("");
  text.append_template("d");
  text.append_input("e");
  EXPECT_EQ(text.text, "abcde");
  EXPECT_EQ(text.input, (std::vector<MarkedText::Stretch>{{0, 3}, {4, 5}}));
}

/// libllama does not know which parts are input; if the input has no names of control tokens, its tokens must be the
/// same.
TEST(MarkedText, tokens_are_those_of_the_whole_text) {
  const auto path = test::real_model();
  if (!path) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
  const Vocab vocab{ModelFile(*path)};
  const std::vector<std::string> words{"hello", " world", "\n", "  ", "x|>", "ab", "1 2", "\xc3\xa9"};
  auto all = control_names(vocab);
  all.insert(all.end(), words.begin(), words.end());
  Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    auto [text, by_template, places] = written(rng, all, words);
    ASSERT_EQ(vocab.tokenize(text, places), by_libllama(vocab, text.text, ControlTokens::parsed)) << text.text;
  }
}

TEST(MarkedText, input_writes_no_control_token) {
  const auto path = test::real_model();
  if (!path) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
  const Vocab vocab{ModelFile(*path)};
  auto names = control_names(vocab);
  std::vector<std::string> halves;  // that form names together with neighbouring text
  for (const auto& name : names) {
    halves.push_back(name.substr(0, name.size() / 2));
    halves.push_back(name.substr(name.size() / 2));
  }
  Rng rng(12);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> of_input = names;
    of_input.insert(of_input.end(), halves.begin(), halves.end());
    auto [text, by_template, places] = written(rng, {"hello", names.front(), halves[2], halves[3], "\n"}, of_input);
    const auto starts = places;
    const auto tokens = vocab.tokenize(text, places);
    std::string spelled;
    std::vector<std::size_t> begins;
    for (const Token token : tokens) {
      begins.push_back(spelled.size());
      spelled += vocab.name(token);
    }
    ASSERT_EQ(spelled, text.text);
    begins.push_back(spelled.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto is_within = [&](const auto& s) { return s.begin < begins[i + 1] && begins[i] < s.end; };
      ASSERT_TRUE(vocab.has_text(tokens[i]) || std::ranges::none_of(text.input, is_within)) << text.text;
    }
    for (std::size_t i = 0; i < starts.size(); ++i) {
      ASSERT_LE(begins[places[i]], starts[i]) << text.text;
      ASSERT_LT(starts[i], begins[std::min(places[i] + 1, tokens.size())]) << text.text;
    }
  }
}

}  // namespace
}  // namespace winnow::model
