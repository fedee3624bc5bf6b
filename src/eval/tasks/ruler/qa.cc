// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/as_size.h"
#include "base/json.h"
#include "eval/tasks/ruler/prompts.h"
#include "eval/tasks/texts.h"
#include "winnow/error.h"

namespace winnow::eval::ruler {

namespace {

using Json = nlohmann::json;

struct Question {
  std::string query;
  std::vector<std::string> answers;
  std::vector<std::size_t> documents;  ///< documents that belong to the question
  std::vector<std::size_t> near;       ///< others of the same article, taken next
};

/// Questions, and the distinct documents of all questions.
struct QuestionSet {
  std::vector<std::string> documents;
  std::vector<Question> questions;

  std::size_t add(const std::string& document) {
    const auto [at, is_new] = known_.try_emplace(document, documents.size());
    if (is_new) documents.push_back(document);
    return at->second;
  }

 private:
  std::map<std::string, std::size_t> known_;
};

void add_article(const Json& article, QuestionSet& to) {
  std::vector<std::size_t> all;
  for (const auto& paragraph : article.at("paragraphs"))
    all.push_back(to.add(paragraph.at("context").get<std::string>()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto near = all;
    std::erase(near, all[i]);
    for (const auto& qa : article["paragraphs"][i].at("qas")) {
      if (qa.value("is_impossible", false)) continue;
      Question question{qa.at("question").get<std::string>(), {}, {all[i]}, near};
      for (const auto& answer : qa.at("answers")) question.answers.push_back(answer.at("text").get<std::string>());
      to.questions.push_back(std::move(question));
    }
  }
}

QuestionSet squad(const Json& file) {
  QuestionSet out;
  for (const auto& article : file.at("data")) add_article(article, out);
  return out;
}

QuestionSet hotpotqa(const Json& file) {
  QuestionSet out;
  for (const auto& line : file) {
    Question question{line.at("question").get<std::string>(), {line.at("answer").get<std::string>()}, {}, {}};
    for (const auto& document : line.at("context"))
      question.documents.push_back(
          out.add(document.at(0).get<std::string>() + "\n" + join(document.at(1).get<std::vector<std::string>>(), "")));
    out.questions.push_back(std::move(question));
  }
  return out;
}

/// Draws a prompt's documents, shuffled: all of the question's, then those near it, then others, up to `count`.
std::vector<std::size_t> chosen(const QuestionSet& set, const Question& question, int count, Random& random) {
  auto out = question.documents;
  auto near = question.near;
  random.shuffle(near);
  out.insert(out.end(), near.begin(), near.end());
  const auto needed = std::max(as_size(count), question.documents.size());
  if (out.size() < needed) {
    const std::vector<std::size_t> first = out;
    for (const int i : random.distinct(static_cast<int>(std::min(needed + first.size(), set.documents.size())),
                                       static_cast<int>(set.documents.size()))) {
      const auto document = as_size(i);
      if (out.size() < needed && std::find(first.begin(), first.end(), document) == first.end())
        out.push_back(document);
    }
  }
  out.resize(std::min(out.size(), needed));
  random.shuffle(out);
  return out;
}

Made make_questions(const QuestionSet& set, int units, Random& random, int number) {
  const auto& question = set.questions[as_size(number) % set.questions.size()];
  const std::string task =
      "Answer the question based on the given documents. Only give me the answer and do not output any other words.";
  std::string context;
  int i = 0;
  for (const auto document : chosen(set, question, units, random)) {
    ++i;
    context += fmt::format("{}Document {}:\n{}", i == 1 ? "" : "\n\n", i, set.documents[document]);
  }
  return {fmt::format("{}\n\nThe following are given documents.\n\n{}", task, context),
          fmt::format("\n\n{}\n\nQuestion: {}", task, question.query), " Answer:", question.answers};
}

Type type_of(const char* name, const char* file, QuestionSet (*read)(const Json&)) {
  return {name, 32, 1, file, Metric::contains_any, [file, read](const TaskOptions& options, int) -> Maker {
            const auto path = std::filesystem::path(options.data) / file;
            try {
              const auto set = std::make_shared<const QuestionSet>(read(parse_json<Json>(read_file(path))));
              if (set->questions.empty()) throw InputError(path.string() + ": there are no questions");
              return
                  [set](int units, Random random, int number) { return make_questions(*set, units, random, number); };
            } catch (const Json::exception& error) {
              throw InputError(fmt::format("{}: {}", path.string(), error.what()));
            } catch (const JsonError& error) {
              throw InputError(fmt::format("{}: {}", path.string(), error.what()));
            }
          }};
}

}  // namespace

void add_qa(std::vector<Type>& to) {
  to.push_back(type_of("qa_1", "ruler/squad.json", squad));
  to.push_back(type_of("qa_2", "ruler/hotpotqa.json", hotpotqa));
}

}  // namespace winnow::eval::ruler
