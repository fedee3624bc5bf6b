// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "eval/task_data.h"
#include "eval/tasks/origins.h"
#include "winnow/error.h"

namespace winnow::eval {
namespace {

class TasksTest : public testing::Test {
 protected:
  /// Expects `count` tokens, or up to two fewer: a space takes three tokens in this vocabulary and may not have fitted.
  void expect_tokens(const std::string& text, int count) const {
    const auto tokens = static_cast<int>(data_.model()->vocab().tokenize(text).size());
    EXPECT_TRUE(count - 3 < tokens && tokens <= count) << tokens << " of " << count;
  }

  TaskData data_;
};

TEST_F(TasksTest, every_task_says_what_it_is) {
  std::set<std::string> names;
  for (const auto& task : list_tasks()) {
    EXPECT_TRUE(names.insert(task.name).second);
    EXPECT_FALSE(task.source.empty() || task.metric.empty() || task.protocol.empty()) << task.name;
    EXPECT_EQ(task.needs.empty(), origins_of({task.needs}).empty()) << task.name << ": where does its file come from?";
  }
  for (const char* name : {"niah", "lines", "kv-retrieval", "ruler/vt", "ruler/qa_2", "short/wic", "perplexity/sliding",
                           "fidelity", "fidelity-long", "efficiency", "throughput"})
    EXPECT_EQ(names.count(name), 1U) << name;
  EXPECT_THROW(data_.make("rule"), UsageError);
}

/// Addresses can be copied as a whole: no punctuation sticks to them.
TEST_F(TasksTest, files_come_from_whole_addresses) {
  std::vector<std::string> needs;
  for (const auto& task : list_tasks()) {
    for (const auto& file : {task.needs, task.instead}) needs.push_back(file);
  }
  const std::regex address("https://[a-z.]+\\.[a-z]+(/[A-Za-z0-9_.-]*[A-Za-z0-9_-])+");
  std::istringstream words(std::regex_replace(origins_of(needs), std::regex("[,;:]? "), " "));
  int addresses = 0;
  for (std::string word; words >> word;) {
    if (word.find("//") == std::string::npos && word.find("www") == std::string::npos) continue;
    ++addresses;
    EXPECT_TRUE(std::regex_match(word, address)) << word;
  }
  EXPECT_GE(addresses, 7);
}

TEST_F(TasksTest, a_line_says_all_of_a_sample) {
  Sample sample;
  sample.task = "some";
  sample.id = "a";
  sample.prompt = {"A text. ", "What?", "", PromptFormat::raw, ControlTokens::as_text};
  sample.begun = "It is";
  sample.documents = {"One. ", "Two. "};
  sample.references = {"red", "blue"};
  sample.classes = {"red", "green"};
  sample.metric = Metric::classification;
  sample.further = {Metric::longest_part};
  sample.scored = ScoredText::first_line;
  sample.max_tokens = 7;
  sample.labels = {{"kind", "word"}};
  data_.write("own.jsonl", line_of(sample));
  const auto read = data_.samples(data_.options().data + "/own.jsonl").front();
  EXPECT_EQ(read.id, "some/a");
  EXPECT_EQ(read.prompt.text, sample.prompt.text);
  EXPECT_EQ(read.prompt.question, sample.prompt.question);
  EXPECT_EQ(read.prompt.format, sample.prompt.format);
  EXPECT_EQ(read.begun, sample.begun);
  EXPECT_EQ(read.documents, sample.documents);
  EXPECT_EQ(read.references, sample.references);
  EXPECT_EQ(read.classes, sample.classes);
  EXPECT_EQ(read.metric, sample.metric);
  EXPECT_EQ(read.further, sample.further);
  EXPECT_EQ(read.scored, sample.scored);
  EXPECT_EQ(read.max_tokens, sample.max_tokens);
  EXPECT_EQ(read.labels, sample.labels);
  for (const auto& change : {+[](Sample& s) { s.references = {""}; }, +[](Sample& s) { s.prompt.question.clear(); },
                             +[](Sample& s) { s.choices.resize(2); }}) {
    auto other = sample;
    change(other);
    EXPECT_THROW(line_of(other), UsageError);
  }
  for (const char* wrong : {R"("format": "xml")", R"("scored": "last_line")", R"("further": ["beauty"])"}) {
    data_.write("own.jsonl", std::string(R"({"question": "?", "outputs": ["!"], )") + wrong + "}");
    EXPECT_THROW(data_.samples(data_.options().data + "/own.jsonl"), InputError) << wrong;
  }
}

/// The number in the line that the question asks for.
std::string solve_lines(const PromptText& prompt) {
  std::smatch asked;
  EXPECT_TRUE(std::regex_search(prompt.question, asked, std::regex("in line ([a-z-]+)\\?")));
  std::string found;
  const std::regex line("line ([a-z-]+): REGISTER_CONTENT is <([0-9]+)>\n");
  for (std::sregex_iterator i(prompt.text.begin(), prompt.text.end(), line), end; i != end; ++i) {
    if ((*i)[1] == asked[1]) found += (*i)[2];
  }
  return found;
}

TEST_F(TasksTest, lines_are_made_up_where_there_is_no_file) {
  data_.options().lengths = {30, 50};
  data_.options().limit = 5;
  const auto samples = data_.samples("lines");
  EXPECT_EQ(samples.size(), 10U);
  for (const auto& sample : samples) {
    EXPECT_EQ(solve_lines(sample.prompt), sample.references.front());
    EXPECT_EQ(std::count(sample.prompt.text.begin(), sample.prompt.text.end(), '\n'),
              2 + std::stoi(sample.labels.at("length")));
  }
  EXPECT_EQ(samples[3].prompt.text, data_.samples("lines")[3].prompt.text);
}

TEST_F(TasksTest, lines_come_from_files) {
  const std::string prompt =
      "Remember.\n\nline odd-fox: REGISTER_CONTENT is <12>\n\nNow the record is over. Tell me what is the "
      "<REGISTER_CONTENT> in line "
      "odd-fox? I need the number. ";
  data_.write("lines/200_lines.jsonl", nlohmann::json{{"prompt", prompt}, {"expected_number", 12}}.dump() +
                                           "\n{\"prompt\": \"x\", \"expected_number\": 1}\n");
  data_.options().lengths = {200};
  const auto samples = data_.samples("lines");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].prompt.text + samples[0].prompt.question, prompt);
  EXPECT_EQ(solve_lines(samples[0].prompt), "12");
  EXPECT_EQ(score(samples[0], "Line 7 has 12."), 1);
  EXPECT_EQ(score(samples[0], "It is 123."), 0);
  ASSERT_EQ(data_.bad_lines().size(), 1U);
  EXPECT_NE(data_.bad_lines().front().find("200_lines.jsonl line 2: "), std::string::npos);
}

TEST_F(TasksTest, keys_stand_at_all_depths) {
  data_.options().lengths = {75};
  data_.options().limit = 10;
  std::map<std::string, int> depths;
  for (const auto& sample : data_.samples("kv-retrieval")) {
    const auto object = sample.prompt.text.substr(sample.prompt.text.find('{'));
    const auto pairs = nlohmann::ordered_json::parse(object);
    EXPECT_EQ(pairs.size(), 75U);
    std::smatch key;
    EXPECT_TRUE(std::regex_search(sample.prompt.question, key,
                                  std::regex("^\nKey: \"([0-9a-f-]{36})\"\nCorresponding value:$")));
    EXPECT_EQ(pairs.at(key[1].str()), sample.references.front());
    const auto place = std::distance(pairs.begin(), pairs.find(key[1].str()));
    EXPECT_EQ(place, 74 * std::stoi(sample.labels.at("depth")) / 100);
    ++depths[sample.labels.at("depth")];
  }
  EXPECT_EQ(depths, (std::map<std::string, int>{{"0", 2}, {"25", 2}, {"50", 2}, {"75", 2}, {"100", 2}}));
}

TEST_F(TasksTest, answers_are_hidden_at_the_depths_that_are_asked_for) {
  std::string words;
  for (int i = 0; i < 40; ++i) words += "There is hay in the field. ";
  data_.write("needle/hay.txt", words);
  data_.options().lengths = {500};
  data_.options().depths = {10, 90};
  std::map<std::string, int> depths;
  for (const auto& sample : data_.samples("niah")) {
    const auto place = sample.prompt.text.find(sample.references.front());
    ASSERT_NE(place, std::string::npos);
    const double share = static_cast<double>(place) / static_cast<double>(sample.prompt.text.size());
    // The needle is inserted after the end of a sentence, and the answer is within the needle.
    EXPECT_NEAR(share, std::stoi(sample.labels.at("depth")) / 100.0, 0.2);
    ++depths[sample.labels.at("depth")];
  }
  EXPECT_EQ(depths, (std::map<std::string, int>{{"10", 5}, {"90", 5}}));
}

TEST_F(TasksTest, each_seed_makes_samples_of_its_own) {
  data_.options().lengths = {5};
  data_.options().limit = 2;
  data_.options().seeds = {3};
  const auto alone = data_.samples("kv-retrieval");
  data_.options().seeds = {1, 3};
  const auto both = data_.samples("kv-retrieval");
  ASSERT_EQ(both.size(), 4U);
  std::set<std::string> ids;
  for (const auto& sample : both) ids.insert(sample.id);
  EXPECT_EQ(ids.size(), 4U);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(both[2 + i].id, alone[i].id);
    EXPECT_EQ(both[2 + i].prompt.text, alone[i].prompt.text);
    EXPECT_NE(both[i].prompt.text, alone[i].prompt.text);
  }
}

TEST_F(TasksTest, keys_come_from_the_papers_files) {
  data_.write("kv-retrieval/kv-retrieval-3_keys.jsonl",
              R"({"ordered_kv_records": [["a", "1"], ["b", "2"], ["c", "3"]], "key": "c", "value": "3"})"
              "\n"
              R"({"ordered_kv_records": [["a", "1"]], "key": "x"})"
              "\n");
  data_.options().lengths = {3};
  const auto samples = data_.samples("kv-retrieval");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_TRUE(samples[0].prompt.text.ends_with("JSON data:\n{\"a\": \"1\",\n \"b\": \"2\",\n \"c\": \"3\"}\n"));
  EXPECT_EQ(samples[0].references, std::vector<std::string>{"3"});
  EXPECT_EQ(samples[0].labels.at("depth"), "100");
  EXPECT_EQ(data_.bad_lines().size(), 1U);
}

std::string science(const std::string& name, int right) {
  return nlohmann::json{
      {"instruction",
       "Please choose the correct answer to the question: What is " + name +
           "?\n\nAnswer1: a fox. Answer2: two hens Answer3: rain\n\nAnswer format: answer1/answer2/answer3"},
      {"answer", "answer" + std::to_string(right)}}
      .dump();
}

TEST_F(TasksTest, choices_are_cut_out_of_the_instruction) {
  data_.write("short/arc-easy.json", "[" + science("it", 2) + "," + science("that", 9) + "]");
  const auto samples = data_.samples("short/arc-easy");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].prompt.text, "");
  EXPECT_EQ(samples[0].prompt.question, "Question: What is it?");
  ASSERT_EQ(samples[0].choices.size(), 3U);
  EXPECT_EQ(samples[0].choices[0].given + samples[0].choices[0].scored, "\nAnswer: a fox.");
  EXPECT_EQ(samples[0].choices[2].scored, " rain");
  EXPECT_EQ(samples[0].references.front(), samples[0].choices[1].name);
  ASSERT_EQ(data_.bad_lines().size(), 1U);
  EXPECT_NE(data_.bad_lines().front().find("arc-easy.json line 2: the answer is answer9, but there are 3 choices"),
            std::string::npos);
}

TEST_F(TasksTest, shots_are_the_first_samples_and_are_not_asked) {
  data_.write("short/openbookqa.json", "[" + science("one", 1) + "," + science("two", 3) + "," + science("three", 2) +
                                           "," + science("four", 2) + "]");
  data_.options().shots = 2;
  data_.options().limit = 1;
  const auto samples = data_.samples("short/openbookqa");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].task, "short/openbookqa/2-shot");
  EXPECT_EQ(samples[0].prompt.text,
            "Question: What is one?\nAnswer: a fox.\n\nQuestion: What is two?\nAnswer: rain\n\n");
  EXPECT_EQ(samples[0].prompt.question, "Question: What is three?");
  data_.options().shots = 4;
  EXPECT_THROW(data_.make("short/openbookqa"), InputError);
}

TEST_F(TasksTest, blanks_are_filled_and_the_text_after_them_is_scored) {
  data_.write(
      "short/winogrande.json",
      R"([{"instruction": "Please choose the correct answer to fill in the blank to complete the given sentence: Sarah was better than Maria so _ always got the cases.\n\nOption1: Sarah Option2: Maria Answer format: option1/option2", "answer": "option2"}])");
  data_.write("short/wic.jsonl",
              R"({"word": "class", "sentence1": "A class.", "sentence2": "Real class.", "label": "false"})"
              "\n"
              R"({"word": "class", "sentence1": "A class.", "sentence2": "Class.", "label": "true"})"
              "\n"
              R"({"word": "class", "sentence1": "A class.", "sentence2": "Real class.", "label": false})"
              "\n"
              R"({"word": "class", "sentence1": "A class.", "sentence2": "Class.", "label": true})"
              "\n");
  const auto blank = data_.samples("short/winogrande").front();
  const auto& right = blank.choices.at(1);
  EXPECT_EQ(right.name, blank.references.front());
  EXPECT_EQ(blank.prompt.question + right.given + right.scored,
            "Sentence: Sarah was better than Maria so Maria always got the cases.");
  EXPECT_EQ(blank.choices[0].scored, " always got the cases.");
  const auto words = data_.samples("short/wic");
  std::vector<std::string> answers;
  for (const auto& sample : words) answers.push_back(sample.references.front());
  EXPECT_EQ(answers, (std::vector<std::string>{"no", "yes", "no", "yes"}));
  const auto& word = words.front();
  EXPECT_EQ(word.prompt.question,
            "Sentence 1: A class.\nSentence 2: Real class.\nQuestion: Is the word 'class' used in the same way in the "
            "two sentences above?");
}

TEST_F(TasksTest, whole_longbench_prompts_are_cut_before_their_question) {
  data_.write("longbench-config/dataset2prompt.json",
              R"({"narrativeqa": "Story: {context}\n\nNow, answer the question based on it asbriefly: {input}",
                                                   "qasper": "Article: {context}\n\n Answer the question based on the article.\n{input}"})");
  data_.write("longbench-config/dataset2maxlen.json", R"({"narrativeqa": 4, "qasper": 4})");
  data_.write(
      "longbench-mini/narrativeqa.jsonl",
      R"({"prompt": "Story: Once.\n\nNow, answer the question based on it as briefly: Who?", "answers": ["x"]})");
  data_.write(
      "longbench-mini/qasper.jsonl",
      R"({"prompt": "Answer the question based on this.\nText.\n\nAnswer the question based on passages.\nWho?", "answers": ["x"]})");
  const auto told = data_.samples("longbench/narrativeqa");
  ASSERT_EQ(told.size(), 1U) << data_.bad_lines().front();
  EXPECT_EQ(told.front().prompt.text, "Story: Once.");
  EXPECT_EQ(told.front().prompt.question, "\n\nNow, answer the question based on it as briefly: Who?");
  const auto read = data_.samples("longbench/qasper");
  ASSERT_EQ(read.size(), 1U) << data_.bad_lines().front();
  EXPECT_EQ(read.front().prompt.text, "Answer the question based on this.\nText.\n\n");
  EXPECT_EQ(read.front().prompt.question, "Answer the question based on passages.\nWho?");
}

TEST_F(TasksTest, texts_are_cut_into_prompt_and_rest) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "line " + std::to_string(i) + "\n";
  data_.write("text/a.txt", text);
  data_.options().lengths = {100};
  data_.options().limit = 3;
  const auto pieces = data_.samples("perplexity/chunked");
  ASSERT_EQ(pieces.size(), 3U);
  for (const auto& piece : pieces) {
    expect_tokens(piece.prompt.text, 50);
    expect_tokens(piece.references.front(), 50);
    const auto at = text.find(piece.prompt.text + piece.references.front());
    EXPECT_TRUE(at == 0 || (at != std::string::npos && text[at - 1] == '\n'));
  }
  const auto sliding = data_.samples("perplexity/sliding");
  expect_tokens(sliding.front().prompt.text, 25);
  expect_tokens(sliding.front().references.front(), 75);
  data_.options().lengths = {100000};
  EXPECT_THROW(data_.make("perplexity/chunked"), InputError);
}

TEST_F(TasksTest, an_answer_of_another_length_is_another_sample) {
  data_.write("longbench-mini/any.jsonl", nlohmann::json{{"prompt", std::string(200, 'x')}}.dump() + "\n");
  const auto usual = data_.samples("fidelity").front();
  EXPECT_EQ(usual.id, "any-1");
  EXPECT_EQ(usual.max_tokens, 64);
  data_.options().answer = 500;
  const auto longer = data_.samples("fidelity").front();
  EXPECT_EQ(longer.id, "any-1-answer-500");
  EXPECT_EQ(longer.max_tokens, 500) << "it must fit into the context with the prompt";
  EXPECT_EQ(longer.labels.at("kind"), "answer 500") << "a column of its own";
  EXPECT_EQ(longer.prompt.text + longer.prompt.question, usual.prompt.text + usual.prompt.question);
}

TEST_F(TasksTest, long_answers_are_summaries_stories_and_talk) {
  for (const char* name : {"gov_report", "hotpotqa", "vcsum"}) {
    data_.write(std::string("longbench-mini/") + name + ".jsonl",
                nlohmann::json{{"prompt", std::string(200, 'x') + " Summary:"}}.dump() + "\n");
  }
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += "line " + std::to_string(i) + "\n";
  data_.write("text/tale.txt", lines);
  data_.write("needle/essay.txt", lines);
  data_.options().lengths = {100};
  data_.options().limit = 2;
  std::map<std::string, int> kinds;
  std::set<std::string> ids;
  for (const auto& sample : data_.samples("fidelity-long")) {
    ++kinds[sample.labels.at("kind")];
    EXPECT_TRUE(ids.insert(sample.id).second) << sample.id;
    EXPECT_EQ(sample.max_tokens, 1024);
    EXPECT_EQ(sample.prompt.format, PromptFormat::chat);
    EXPECT_FALSE(sample.prompt.question.empty());
  }
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"summary", 2}, {"story", 2}, {"conversation", 2}}));
  EXPECT_FALSE(ids.contains("hotpotqa-1-answer-1024")) << "a question is no summary";
  data_.options().answer = 96;
  EXPECT_EQ(data_.samples("fidelity-long").front().labels.at("kind"), "summary, answer 96");
}

TEST_F(TasksTest, efficiency_has_prompts_of_its_lengths) {
  std::string text;
  for (int i = 0; i < 900; ++i) text += "word " + std::to_string(i) + " ";
  data_.write("needle/a.txt", text);
  data_.options().lengths = {200, 400};
  const auto tasks = data_.make("efficiency");
  EXPECT_EQ(tasks.front().sharing, Sharing::alone);
  std::set<std::string> texts;
  for (const auto& sample : tasks.front().samples) {
    const int length = std::stoi(sample.labels.at("length"));
    expect_tokens(sample.prompt.text, length - 32);
    expect_tokens(sample.prompt.question, 32);
    texts.insert(sample.prompt.text);
  }
  EXPECT_EQ(texts.size(), 6U);
}

}  // namespace
}  // namespace winnow::eval
