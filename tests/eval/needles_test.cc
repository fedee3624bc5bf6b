// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "eval/task_data.h"
#include "eval/tasks/needles/place.h"
#include "winnow/error.h"

namespace winnow::eval {
namespace {

using Texts = std::set<std::string>;

constexpr const char* kShapes[] = {"needles/one", "needles/alike", "needles/hop", "needles/several"};

int count(const std::string& text, const std::string& part) {
  int out = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
  return out;
}

Texts words_of(const std::string& text) {
  std::istringstream stream(std::regex_replace(text, std::regex("[.,?:]"), ""));
  Texts out;
  for (std::string word; stream >> word;) out.insert(word);
  return out;
}

/// The sentence of `text` that contains `part`.
std::string sentence_with(const std::string& text, const std::string& part) {
  const auto at = text.find(part);
  const auto stop = text.rfind(". ", at);
  const auto begin = stop == std::string::npos ? 0 : stop + 2;
  return text.substr(begin, text.find('.', at + part.size()) + 1 - begin);
}

class NeedlesTest : public testing::Test {
 protected:
  NeedlesTest() {
    for (int file = 0; file < 4; ++file) {
      std::string text;
      for (int i = 0; i < 700; ++i)
        text +=
            (file % 2 == 0 ? "odd" : "even") + std::to_string(100000 + 1000 * file + i) + (i % 9 == 8 ? ".\n" : " ");
      data_.write("needle/" + std::to_string(file) + ".txt", text);
    }
    data_.options().lengths = {2000};  // in bytes; a space takes three
    data_.options().limit = 5;
    data_.options().format = PromptFormat::raw;
  }

  int tokens(const std::string& text, const std::string& question) const {
    const auto prompt = data_.model()->tokenize(PromptText{text, question, "", PromptFormat::raw});
    return static_cast<int>(prompt.text.size() + prompt.question.size());
  }

  /// In tokens from the prompt's beginning. Tokens of this vocabulary are single bytes, so prefixes can be counted.
  double middle_of_answer(const Sample& sample) const {
    const auto& answer = sample.references.front();
    const auto before = sample.prompt.text.substr(0, sample.prompt.text.find(answer));
    return (tokens(before, "") + tokens(before + answer, "")) / 2.0;
  }

  TaskData data_;
};

TEST_F(NeedlesTest, prompts_have_their_length_and_each_answer_once) {
  for (const char* task : kShapes) {
    std::map<std::string, int> kinds;
    Texts ids;
    for (const auto& sample : data_.samples(task)) {
      ++kinds[sample.labels.at("kind")];
      EXPECT_TRUE(ids.insert(sample.id).second) << sample.id;
      for (const auto& answer : sample.references) {
        EXPECT_EQ(count(sample.prompt.text, answer), 1) << answer;
        EXPECT_EQ(count(sample.prompt.question, answer), 0) << answer;
      }
      const int all = tokens(sample.prompt.text, sample.prompt.question);
      EXPECT_LE(all, 2000);
      EXPECT_GT(all, 2000 - 14) << "there is room for another word";
    }
    EXPECT_EQ(kinds, (std::map<std::string, int>{
                         {"code", 5}, {"digits", 5}, {"identifier", 5}, {"sentence", 5}, {"word", 5}}));
  }
}

TEST_F(NeedlesTest, answers_have_the_form_of_their_kind) {
  const std::map<std::string, std::regex> forms = {
      {"word", std::regex("[a-z]{6,}")},
      {"sentence", std::regex("[A-Z][a-z]+ ([a-z]+ ){15,17}[a-z]+")},
      {"digits", std::regex("[1-9][0-9]{6}")},
      {"identifier", std::regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}")},
      {"uuid", std::regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")},
      {"code", std::regex("[a-z]+_[a-z]+\\([a-z]+, [1-9][0-9]\\)")}};
  data_.options().limit = 4;
  for (const auto split : {Split::tuning, Split::test}) {
    data_.options().split = split;
    for (const auto& [kind, form] : forms) {
      data_.options().kinds = {kind};
      for (const auto& sample : data_.samples("needles/several")) {
        for (const auto& answer : sample.references) EXPECT_TRUE(std::regex_match(answer, form)) << answer;
      }
    }
  }
  data_.options().kinds = {"picture"};
  EXPECT_THROW(data_.make("needles/one"), UsageError);
}

TEST_F(NeedlesTest, answers_stand_at_their_depth) {
  data_.options().depths = {0, 40, 100};
  for (const auto& sample : data_.samples("needles/one")) {
    const auto& text = sample.prompt.text;
    const double place = static_cast<double>(text.find(sample.references.front())) / static_cast<double>(text.size());
    // The tolerance covers the rest of a sentence of nine words, and the answer's place in its own sentence.
    EXPECT_NEAR(place, std::stod(sample.labels.at("depth")) / 100, 0.1) << text;
  }
}

TEST_F(NeedlesTest, questions_lead_to_their_answers) {
  for (const auto split : {Split::tuning, Split::test}) {
    data_.options().split = split;
    const std::regex link(split == Split::tuning ? "In the register ([A-Z][a-z]+) is listed as ([A-Z][a-z]+)\\."
                                                 : "Among friends ([A-Z][a-z]+) goes by the nickname ([A-Z][a-z]+)\\.");
    for (const auto& sample : data_.samples("needles/hop")) {
      const auto& text = sample.prompt.text;
      const auto sentence = sentence_with(text, sample.references.front());
      int asked = 0;
      int links = 0;
      for (std::sregex_iterator i(text.begin(), text.end(), link), end; i != end; ++i, ++links) {
        EXPECT_EQ(sample.prompt.question.find((*i)[2]), std::string::npos) << "the name stands in the text alone";
        if (sample.prompt.question.find((*i)[1]) == std::string::npos) continue;
        EXPECT_NE(sentence.find((*i)[2]), std::string::npos) << sentence;
        ++asked;
      }
      EXPECT_EQ(asked, 1) << text;
      EXPECT_EQ(links, 2);
    }
  }
}

TEST_F(NeedlesTest, late_questions_are_those_of_one_needle_after_another_question) {
  data_.options().answer = 70;
  const auto late = data_.samples("needles/late");
  ASSERT_FALSE(late.empty());
  for (const auto& sample : late) {
    const auto& answer = sample.references.front();
    EXPECT_NE(sample.prompt.text.find(answer), std::string::npos);
    EXPECT_NE(sample.prompt.question.find("summary"), std::string::npos);
    EXPECT_NE(sample.later, sample.prompt.question);
    EXPECT_EQ(sample.later.find(answer), std::string::npos);
    EXPECT_NE(sample.id.find("after-70"), std::string::npos);
  }
}

/// Whether two sentences differ only in their keys and answers.
bool is_alike(const std::string& sentence, const std::string& answer, const std::string& other) {
  const auto begin = words_of(sentence.substr(0, sentence.find(answer)));
  Texts missing;
  const auto words = words_of(other);
  for (const auto& word : begin) {
    if (!words.contains(word)) missing.insert(word);
  }
  return missing.size() == 1;  // the key
}

TEST_F(NeedlesTest, others_look_alike_and_several_are_asked_for) {
  for (const auto& sample : data_.samples("needles/alike")) {
    const auto& answer = sample.references.front();
    const auto text = std::regex_replace(sample.prompt.text, std::regex("\""), "");
    const auto sentence = sentence_with(text, answer);
    int alike = 0;
    std::istringstream lines(std::regex_replace(text, std::regex("\\. "), ".\n"));
    for (std::string line; std::getline(lines, line);) alike += is_alike(sentence, answer, line) ? 1 : 0;
    EXPECT_EQ(alike, 3) << sample.prompt.text;
  }
  for (const auto& sample : data_.samples("needles/several")) {
    EXPECT_EQ(Texts(sample.references.begin(), sample.references.end()).size(), 3U);
    for (const auto& answer : sample.references) {
      int keys = 0;
      for (const auto& word : words_of(sentence_with(sample.prompt.text, answer)))
        keys += std::regex_match(word, std::regex("[A-Z][a-z]{3,}")) && words_of(sample.prompt.question).contains(word);
      EXPECT_GE(keys, 1) << sample.prompt.question;
    }
    EXPECT_NEAR(score(sample, "It is " + sample.references[1] + "!"), 1.0 / 3, 1e-12);
  }
}

TEST_F(NeedlesTest, answers_stand_at_borders_or_off_them) {
  data_.options().chunk = 20;
  data_.options().kinds = {"digits", "sentence"};
  std::map<std::string, int> places;
  for (const auto& sample : data_.samples("needles/one")) {
    const double middle = middle_of_answer(sample);
    const double away = std::abs(middle - 20 * std::round(middle / 20));
    const bool is_at = sample.labels.at("kind").ends_with(", at a border");
    ++places[is_at ? "at" : "off"];
    if (is_at) {
      EXPECT_LE(away, 2);
    } else {
      EXPECT_GE(away, 8);
    }
    EXPECT_LE(tokens(sample.prompt.text, sample.prompt.question), 2000);
  }
  EXPECT_EQ(places, (std::map<std::string, int>{{"at", 10}, {"off", 10}}));
}

TEST_F(NeedlesTest, splits_share_no_text_and_no_wording) {
  std::map<Split, Texts> texts;
  std::map<Split, Texts> wordings;
  std::map<Split, Texts> answers;
  data_.options().limit = 12;
  for (const auto split : {Split::tuning, Split::test}) {
    data_.options().split = split;
    for (const auto& sample : data_.samples("needles/one")) {
      const auto sentence = sentence_with(sample.prompt.text, sample.references.front());
      const auto hidden = sentence.substr(0, sentence.find(sample.references.front()));
      for (const auto& words : {sample.prompt.question, hidden})
        wordings[split].insert(std::regex_replace(words, std::regex("[A-Z][a-z]+"), ""));
      if (sample.labels.at("kind").ends_with("sentence")) answers[split].merge(words_of(sample.references.front()));
      for (const auto& word : words_of(sample.prompt.text)) {
        if (std::regex_match(word, std::regex("(odd|even)[0-9]{6}"))) texts[split].insert(word);
      }
    }
  }
  const auto both = [](const Texts& a, const Texts& b) {
    Texts out;
    for (const auto& one : a) {
      if (b.contains(one)) out.insert(one);
    }
    return out;
  };
  EXPECT_EQ(both(texts[Split::tuning], texts[Split::test]), Texts());
  EXPECT_EQ(both(wordings[Split::tuning], wordings[Split::test]), Texts());
  EXPECT_EQ(both(answers[Split::tuning], answers[Split::test]), Texts());
  EXPECT_GT(texts[Split::test].size(), 700U) << "of both texts";
  EXPECT_TRUE(texts[Split::tuning].begin()->starts_with("odd")) << "the first text is for tuning";
}

TEST_F(NeedlesTest, the_seed_says_all) {
  const auto first = data_.samples("needles/one");
  const auto again = data_.samples("needles/one");
  data_.options().seeds = {2};
  const auto other = data_.samples("needles/one");
  data_.options().seeds = {1};
  data_.options().chunk = 16;
  const auto placed = data_.samples("needles/one");
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].prompt.text, again[i].prompt.text);
    EXPECT_NE(first[i].prompt.text, other[i].prompt.text);
    EXPECT_NE(first[i].id, other[i].id);
  }
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(placed[i].references, placed[i + 5].references) << "the same at a border and off borders";
    EXPECT_NE(placed[i].id, placed[i + 5].id);
  }
}

TEST_F(NeedlesTest, what_is_missing_or_too_short_is_named) {
  data_.options().lengths = {60};
  EXPECT_THROW(data_.make("needles/one"), InputError);
  TaskData alone;
  alone.write("needle/only.txt", "One text.");
  EXPECT_THROW(alone.make("needles/one"), InputError);
}

TEST_F(NeedlesTest, distances_are_from_the_middle_of_an_answer) {
  EXPECT_EQ(needles::to_border({38, 42}, 20), 0);
  EXPECT_EQ(needles::to_border({10, 13}, 20), 8.5);
  EXPECT_EQ(needles::to_border({49, 51}, 20), 10);
  EXPECT_EQ(needles::to_border({47, 48}, 16), 0.5);
  const PromptText prompt{"abcdef", "?", "", PromptFormat::raw};
  const auto range = needles::tokens_with(*data_.model(), prompt, "cde");
  EXPECT_EQ(tokens("abcdef", "") - range.end, 1);
  EXPECT_EQ(range.end - range.begin, 3);
}

}  // namespace
}  // namespace winnow::eval
