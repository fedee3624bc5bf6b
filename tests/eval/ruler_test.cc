// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "eval/task_data.h"
#include "winnow/error.h"

namespace winnow::eval {
namespace {

using Texts = std::set<std::string>;

/// Answers RULER's question from the prompt alone.
Texts solve_needles(const PromptText& prompt) {
  const std::regex needle("One of the special magic [a-z]+ for ([a-z0-9-]+) is: ([a-z0-9-]+)\\.");
  Texts out;
  for (std::sregex_iterator i(prompt.text.begin(), prompt.text.end(), needle), end; i != end; ++i) {
    const std::regex asked("[ ,]" + (*i)[1].str() + "[ ,]");
    if (std::regex_search(prompt.question, asked)) out.insert((*i)[2]);
  }
  return out;
}

Texts solve_chain(const PromptText& prompt) {
  const std::string text = prompt.text.substr(prompt.text.rfind("Memorize and track"));
  std::smatch value;
  EXPECT_TRUE(std::regex_search(prompt.question, value, std::regex("assigned the value ([0-9]{5})")));
  std::map<std::string, std::string> values;
  const std::regex assignment("VAR ([A-Z]+) = (VAR )?([A-Z0-9]+)");
  for (std::sregex_iterator i(text.begin(), text.end(), assignment), end; i != end; ++i) {
    values[(*i)[1]] = (*i)[2].matched ? values.at((*i)[3]) : (*i)[3].str();
  }
  Texts out;
  for (const auto& [name, of] : values) {
    if (of == value[1]) out.insert(name);
  }
  return out;
}

/// The `count` most frequent words; none if the last of them is as frequent as the next one.
Texts most_frequent(const std::string& text, const std::regex& word, std::size_t count) {
  std::map<std::string, int> times;
  for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i) ++times[(*i)[1]];
  std::multimap<int, std::string, std::greater<>> sorted;
  for (const auto& [w, n] : times) sorted.emplace(n, w);
  Texts out;
  auto at = sorted.begin();
  for (std::size_t i = 0; i < count && at != sorted.end(); ++i, ++at) out.insert(at->second);
  return at != sorted.end() && std::prev(at)->first == at->first ? Texts() : out;
}

Texts solve(const std::string& type, const PromptText& prompt) {
  if (type.starts_with("niah")) return solve_needles(prompt);
  if (type == "vt") return solve_chain(prompt);
  if (type == "cwe")
    return most_frequent(prompt.text.substr(prompt.text.rfind("Memorize")), std::regex("[0-9]\\. ([a-z-]+)"), 10);
  return most_frequent(prompt.text.substr(prompt.text.rfind("coded words. ") + 13), std::regex("([a-z]{6})"), 3);
}

std::string essay() {
  std::string out;
  for (int i = 0; i < 60; ++i) out += "Sentence " + std::to_string(i) + " says  little.\nWhat of it? ";
  return out;
}

std::string squad() {
  nlohmann::json data;
  for (int article = 0; article < 3; ++article) {
    nlohmann::json paragraphs;
    for (int i = 0; i < 30; ++i) {
      const std::string name = std::to_string(article) + "x" + std::to_string(i);
      nlohmann::json one = {{"question", "Who is " + name + "?"},
                            {"is_impossible", false},
                            {"answers", {{{"text", "A" + name}}, {{"text", "B"}}}}};
      nlohmann::json other = {{"question", "Nothing?"}, {"is_impossible", true}, {"answers", nlohmann::json::array()}};
      paragraphs.push_back({{"context", "The man " + name + " is A" + name + "."}, {"qas", {other, one}}});
    }
    data.push_back({{"paragraphs", paragraphs}});
  }
  return nlohmann::json{{"data", data}}.dump();
}

std::string hotpotqa() {
  using Json = nlohmann::json;
  Json out;
  for (int i = 0; i < 90; ++i) {
    const std::string n = std::to_string(i);
    const Json title = Json::array({"Title " + n, Json::array({"One. ", "Two " + n + "."})});
    const Json near = Json::array({"Near " + n, Json::array({"W" + n})});
    out.push_back({{"question", "Which " + n + "?"}, {"answer", "W" + n}, {"context", Json::array({title, near})}});
  }
  return out.dump();
}

class RulerTest : public testing::Test {
 protected:
  RulerTest() { data_.write("needle/a.txt", essay()); }

  void write_questions() const {
    data_.write("ruler/squad.json", squad());
    data_.write("ruler/hotpotqa.json", hotpotqa());
  }

  std::size_t tokens(const Sample& sample) const {
    const auto prompt = data_.model()->tokenize(sample.prompt);
    return prompt.text.size() + prompt.question.size();
  }

  TaskData data_;
};

TEST_F(RulerTest, prompts_fill_their_length_and_have_the_answer) {
  data_.options().lengths = {3500, 10000};  // of the common words, below and above 4,096 tokens
  data_.options().limit = 4;
  for (const auto& task : data_.make("ruler")) {
    EXPECT_EQ(task.samples.size(), 8U);
    for (const auto& sample : task.samples) {
      const auto length = std::stoul(sample.labels.at("length"));
      const auto all = tokens(sample) + static_cast<std::size_t>(sample.max_tokens);
      EXPECT_LE(all, length) << sample.task;
      EXPECT_GE(all, length - length / 20) << sample.task;
      EXPECT_EQ(solve(sample.task.substr(6), sample.prompt), Texts(sample.references.begin(), sample.references.end()))
          << sample.id << sample.task;
      EXPECT_EQ(sample.metric, Metric::contains_all);
    }
  }
  ASSERT_EQ(data_.left_out().size(), 1U);
  EXPECT_NE(data_.left_out().front().find("2 tasks cannot be measured: the data folder has no ruler/"),
            std::string::npos)
      << data_.left_out().front();
}

TEST_F(RulerTest, has_the_authors_words) {
  data_.options().limit = 1;
  const auto one = data_.samples("ruler/niah_single_1").front().prompt;
  EXPECT_TRUE(one.text.starts_with(
      "A special magic number is hidden within the following text. Make sure to memorize it. I will quiz you "
      "about the number afterwards.\nThe grass is green."));
  EXPECT_TRUE(one.question.starts_with("\nWhat is the special magic number for ") &&
              one.question.ends_with(" mentioned in the provided text is"));
  const auto four = data_.samples("ruler/niah_multiquery").front();
  EXPECT_TRUE(four.prompt.text.starts_with("Some special magic numbers are hidden within the following text."));
  EXPECT_NE(four.prompt.question.find(", and "), std::string::npos);
  EXPECT_EQ(four.references.size(), 4U);
  EXPECT_EQ(data_.samples("ruler/niah_multivalue").front().references.size(), 4U);
  EXPECT_EQ(data_.samples("ruler/niah_multikey_1").front().references.size(), 1U);
}

TEST_F(RulerTest, the_seed_says_all) {
  data_.options().limit = 2;
  const auto first = data_.samples("ruler/vt");
  const auto again = data_.samples("ruler/vt");
  EXPECT_EQ(first[1].prompt.text, again[1].prompt.text);
  EXPECT_NE(first[0].prompt.text, first[1].prompt.text);
  data_.options().seeds = {2};
  EXPECT_NE(data_.samples("ruler/vt")[1].prompt.text, first[1].prompt.text);
}

TEST_F(RulerTest, questions_come_with_their_documents) {
  write_questions();
  data_.options().lengths = {2000};
  data_.options().limit = 5;
  for (const auto& sample : data_.samples("ruler/qa_1")) {
    const std::string name = sample.references.front().substr(1);
    EXPECT_NE(sample.prompt.question.find("Question: Who is " + name + "? Answer:"), std::string::npos);
    EXPECT_NE(sample.prompt.text.find("The man " + name + " is A" + name + "."), std::string::npos);
    EXPECT_NE(sample.prompt.text.find("\n\nDocument 1:\nThe man "), std::string::npos);
    EXPECT_GE(tokens(sample), 1800U);
    EXPECT_LE(tokens(sample), 2000U - 32);
    EXPECT_EQ(score(sample, "it is b"), 1) << "one of two answers is enough";
  }
  for (const auto& sample : data_.samples("ruler/qa_2")) {
    const std::string number = sample.references.front().substr(1);
    EXPECT_NE(sample.prompt.text.find(":\nTitle " + number + "\nOne. Two " + number + "."), std::string::npos);
    EXPECT_NE(sample.prompt.text.find(":\nNear " + number + "\nW" + number), std::string::npos);
  }
  data_.options().lengths = {3500};
  data_.options().limit = 1;
  data_.make("ruler");
  EXPECT_TRUE(data_.left_out().empty());
}

TEST_F(RulerTest, what_is_missing_or_too_short_is_named) {
  EXPECT_THROW(data_.make("ruler/qa_1"), InputError);
  data_.write("ruler/squad.json", R"({"data": 5})");
  EXPECT_THROW(data_.make("ruler/qa_1"), InputError);
  data_.options().lengths = {300};
  EXPECT_THROW(data_.make("ruler/vt"), InputError);
}

TEST_F(RulerTest, reads_files_of_the_generator) {
  data_.write(
      "ruler/niah_multikey_3-4k.jsonl",
      nlohmann::json{{"index", 7}, {"input", "Text.\nMore.\nWhat is it? It is"}, {"outputs", {"x"}}}.dump() + "\n");
  data_.write(
      "ruler/qa_1-8k.jsonl",
      nlohmann::json{{"input", "Text.\nQuestion: What?"}, {"answer_prefix", " Answer:"}, {"outputs", {"x", "y"}}}
              .dump() +
          "\n");
  const auto key = data_.samples("ruler/niah_multikey_3-4k").front();
  EXPECT_EQ(key.prompt.text, "Text.\nMore.");
  EXPECT_EQ(key.prompt.question, "\nWhat is it? It is");
  EXPECT_EQ(key.id, "7");
  const auto qa = data_.samples("ruler/qa_1-8k").front();
  EXPECT_EQ(qa.prompt.question, "\nQuestion: What? Answer:");
  EXPECT_EQ(qa.metric, Metric::contains_any);
  EXPECT_EQ(qa.max_tokens, 32);
  data_.options().format = PromptFormat::chat;
  const auto chat = data_.samples("ruler/qa_1-8k").front();
  EXPECT_EQ(chat.prompt.format, PromptFormat::chat);
  EXPECT_EQ(chat.prompt.question, "Question: What?");
  EXPECT_EQ(chat.begun, "Answer:") << "after the template";
  EXPECT_EQ(chat.labels.at("kind"), "chat");
  data_.write("ruler/other.jsonl", "{}\n");
  EXPECT_THROW(data_.make("ruler/other"), InputError);
}

}  // namespace
}  // namespace winnow::eval
