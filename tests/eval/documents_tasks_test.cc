// SPDX-License-Identifier: Apache-2.0
// Tasks whose samples are documents and a question.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "eval/task_data.h"
#include "winnow/error.h"

namespace winnow::eval {
namespace {

using Json = nlohmann::json;

class DocumentsTasksTest : public testing::Test {
 protected:
  void SetUp() override {
    data_.write(
        "longbench-config/dataset2prompt.json",
        Json{{"hotpotqa", "Answer it.\n\nThe passages:\n{context}\n\nAnswer it now.\n\nQuestion: {input}\nAnswer:"},
             {"dureader", "请回答。\n\n文章：{context}\n\n请基于上述文章回答。\n\n问题：{input}\n回答："}}
            .dump());
    data_.write("longbench-config/dataset2maxlen.json", R"({"hotpotqa": 32, "dureader": 128})");
  }

  /// The whole prompt again.
  static std::string joined(const Sample& sample) {
    std::string out = sample.prompt.text;
    for (const auto& document : sample.documents) out += document;
    return out + sample.prompt.question;
  }

  TaskData data_;
};

TEST_F(DocumentsTasksTest, official_lines_are_split_into_passages) {
  const std::string context =
      "Passage 1:\nOne, see Passage 2:\nnot here.\nPassage 3:\nnot yet.\nPassage 2:\nPassage 3:\nTwo is empty.";
  data_.write("longbench/hotpotqa.jsonl",
              Json{{"_id", "a"}, {"context", context}, {"input", "Who?"}, {"answers", {"x"}}, {"length", 5000}}.dump() +
                  "\n" + Json{{"context", "Text."}, {"input", "Who?"}, {"answers", {"x"}}}.dump());
  const auto samples = data_.samples("documents/hotpotqa");
  ASSERT_EQ(samples.size(), 1U);
  const auto& one = samples.front();
  EXPECT_EQ(one.task, "documents/hotpotqa");
  EXPECT_EQ(one.id, "a");
  EXPECT_EQ(one.prompt.text, "Answer it.\n\nThe passages:\n");
  EXPECT_EQ(one.documents,
            (std::vector<std::string>{"Passage 1:\nOne, see Passage 2:\nnot here.\nPassage 3:\nnot yet.\n",
                                      "Passage 2:\n", "Passage 3:\nTwo is empty."}));
  EXPECT_EQ(one.prompt.question, "\n\nAnswer it now.\n\nQuestion: Who?\nAnswer:");
  EXPECT_EQ(one.max_tokens, 32);
  EXPECT_EQ(one.metric, Metric::qa_f1);
  ASSERT_EQ(data_.bad_lines().size(), 1U);
  EXPECT_NE(data_.bad_lines().front().find("line 2: the prompt has no \"Passage 1\""), std::string::npos)
      << data_.bad_lines().front();
}

TEST_F(DocumentsTasksTest, whole_chinese_prompts_are_split) {
  const std::string prompt =
      "请回答。\n\n文章：文章1\n标题：一\n内容一\n\n文章2\n标题：二\n见文章3\n\n请基于上述文章回答。\n\n问题：谁\n回答"
      "：";
  data_.write("longbench-mini/dureader.jsonl", Json{{"id", 3}, {"prompt", prompt}, {"answers", {"甲"}}}.dump());
  const auto one = data_.samples("documents/dureader").front();
  EXPECT_EQ(joined(one), prompt);
  EXPECT_EQ(one.prompt.text, "请回答。\n\n文章：");
  ASSERT_EQ(one.documents.size(), 2U);
  EXPECT_EQ(one.documents[1], "文章2\n标题：二\n见文章3");
  EXPECT_EQ(one.metric, Metric::rouge_l_zh);
  EXPECT_EQ(one.further, std::vector{Metric::qa_f1_zh});
  EXPECT_EQ(one.max_tokens, 128);
}

TEST_F(DocumentsTasksTest, files_of_questions_are_tasks) {
  data_.write("multi-doc/mine.jsonl",
              Json{{"documents", {"one", "two"}}, {"question", "Who?"}, {"answers", {"x", "y"}}}.dump() + "\n" +
                  Json{{"id", "b"},
                       {"documents", {"one"}},
                       {"question", "Who?"},
                       {"answers", {"x"}},
                       {"metric", "rouge_l"},
                       {"max_tokens", 7}}
                      .dump());
  data_.write("multi-doc/other.jsonl", Json{{"documents", {"1"}}, {"question", "?"}, {"answers", {"z"}}}.dump());
  const auto mine = data_.samples("documents/multi-doc/mine");
  ASSERT_EQ(mine.size(), 2U);
  EXPECT_EQ(mine[0].task, "documents/multi-doc/mine");
  EXPECT_EQ(joined(mine[0]), "one\n\ntwo\n\nQuestion: Who?\nAnswer:");
  EXPECT_EQ(mine[0].max_tokens, 32);
  EXPECT_EQ(score(mine[0], "y\nQuestion: another"), 1);
  EXPECT_EQ(mine[1].id, "b");
  EXPECT_EQ(mine[1].metric, Metric::rouge_l);
  EXPECT_EQ(mine[1].max_tokens, 7);
  const auto all = data_.make("documents-fidelity/multi-doc");
  EXPECT_EQ(all.front().samples.size(), 3U);
  EXPECT_EQ(all.front().against, Against::full);
  EXPECT_EQ(all.front().samples[2].task, "documents-fidelity/multi-doc/other");
  EXPECT_EQ(data_.samples("documents-fidelity/multi-doc/other").size(), 1U);
  data_.options().answer = 100;
  const auto longer = data_.samples("documents-fidelity/multi-doc/other").front();
  EXPECT_EQ(longer.max_tokens, 100);
  EXPECT_EQ(longer.id, "1-answer-100");
  EXPECT_THROW(data_.make("documents/multi-doc/nothing"), UsageError);
}

TEST_F(DocumentsTasksTest, one_s_own_files_may_have_documents) {
  const auto line = [](const Json& documents, const std::string& question = "Who?") {
    return Json{{"text", "Read."}, {"documents", documents}, {"question", question}, {"outputs", {"x"}}}.dump() + "\n";
  };
  data_.write("own.jsonl", line({"one ", "two "}) + line(Json::array()) + line({"one", 2}) + line({"one", ""}) +
                               line("one") + line({"one"}, ""));
  const auto samples = data_.samples(data_.options().data + "/own.jsonl");
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(joined(samples.front()), "Read.one two Who?");
  EXPECT_EQ(samples.front().documents.size(), 2U);
  const auto& bad = data_.bad_lines();
  ASSERT_EQ(bad.size(), 5U);
  EXPECT_NE(bad[0].find("line 2: there are no documents"), std::string::npos) << bad[0];
  EXPECT_NE(bad[1].find("line 3: document 2 of 2 is not a string"), std::string::npos) << bad[1];
  EXPECT_NE(bad[2].find("line 4: document 2 of 2 is empty"), std::string::npos) << bad[2];
  EXPECT_NE(bad[3].find("line 5: \"documents\" is not a list of strings"), std::string::npos) << bad[3];
  EXPECT_NE(bad[4].find("line 6: there is no question about the documents"), std::string::npos) << bad[4];
}

}  // namespace
}  // namespace winnow::eval
