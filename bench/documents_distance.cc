// SPDX-License-Identifier: Apache-2.0
// How close each method of asking over several documents stays to one joint prefill, and how well it answers. All
// methods read recompute's greedy answer (teacher-forced), and their distributions are compared. Then each answers by
// itself.
//   winnow_documents_distance MODEL FILE.jsonl … [--first 0] [--questions 10] [--tokens 7500] [--steps 32]
//     [--method samkv --method epic]
// Each line of a file has "documents", "question", "answers", and the data set's own "metric" (as winnow eval names
// them) and "max_tokens" of an answer. The joint sequence: the "prefix", if there is one (a document of its own), the
// documents in their order and the "question", as they stand. A line without prefix is plain: each document is followed
// by a blank line and the question by "Answer:". The first line of an answer is scored: after it the model adds
// questions of its own. Prints one CSV row for each question and method: mean KL(recompute || method) in nats, share of
// steps with the same best token, score of the answer, ratios of kept and recomputed entries, seconds to the first
// token.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "documents/resident.h"
#include "eval/measures/distance.h"
#include "eval/sample.h"
#include "program.h"
#include "times.h"
#include "winnow/ask.h"
#include "winnow/generate.h"

namespace {

using winnow::Token;
using winnow::eval::best;
using winnow::eval::Distance;
using Documents = std::vector<std::shared_ptr<const winnow::documents::Document>>;

struct Options {
  std::string model;
  std::vector<std::string> files;
  std::vector<std::string> methods = {"recompute:bos=each",
                                      "samkv",
                                      "samkv:update=overwrite",
                                      "samkv:personalize=off",
                                      "samkv:select=off",
                                      "samkv:recompute=off",
                                      "samkv:select=off,recompute=off",
                                      "cacheblend",
                                      "cacheblend:schedule=decreasing",
                                      "epic",
                                      "epic:initial=64,local=128",
                                      "reuse",
                                      "reuse:positions=raw",
                                      "multi-infllm"};
  int first = 0;       ///< question of each file, from 0
  int questions = 10;  ///< of each file
  int tokens = 7500;   ///< of all documents: longer ones are cut
  int steps = 32;
  int threads = 0;
};

struct Row {
  std::string method;
  Distance fidelity;
  double score = 0;
  double kept = 0;
  double recomputed = 0;
  double seconds = 0;
};

struct Task {
  std::vector<std::vector<Token>> documents;
  std::vector<Token> question;
  winnow::eval::Sample sample;  ///< what answers are scored by
};

std::size_t count_tokens(const Task& task, std::size_t longest) {
  std::size_t out = 0;
  for (const auto& document : task.documents) out += std::min(document.size(), longest);
  return out;
}

/// Cuts the ends of the longest documents, to the greatest length with which all together have so many tokens.
void fit(Task& task, std::size_t tokens) {
  std::size_t longest = 0;
  for (const auto& document : task.documents) longest = std::max(longest, document.size());
  while (count_tokens(task, longest) > tokens) --longest;
  for (auto& document : task.documents) document.resize(std::min(document.size(), longest));
}

Task task_of(const winnow::Model& model, const std::string& line, const Options& options) {
  const auto json = nlohmann::json::parse(line);
  const bool plain = !json.contains("prefix");
  Task task;
  if (!plain) task.documents.push_back(model.tokenize(json.at("prefix").get<std::string>()));
  for (const auto& text : json.at("documents"))
    task.documents.push_back(model.tokenize(text.get<std::string>() + (plain ? "\n\n" : "")));
  const auto question = json.at("question").get<std::string>();
  task.question = model.tokenize(plain ? "Question: " + question + "\nAnswer:" : question);
  task.sample.references = json.at("answers").get<std::vector<std::string>>();
  task.sample.metric = winnow::eval::parse_metric(json.at("metric").get<std::string>());
  task.sample.max_tokens = json.at("max_tokens").get<int>();
  task.sample.scored = plain ? winnow::eval::ScoredText::first_line : winnow::eval::ScoredText::whole;
  fit(task, static_cast<std::size_t>(options.tokens));
  return task;
}

/// The budget of methods that need one: what samkv kept.
winnow::AskOptions options_of(const std::string& method, double kept, std::size_t tokens) {
  winnow::AskOptions out;
  out.method = winnow::AskSpec::parse(method);
  if (out.method.needs_budget()) {
    const auto entries = static_cast<int>(kept * static_cast<double>(tokens));
    out.budget = winnow::Budget::parse(std::to_string(std::max(64, entries)));
  }
  return out;
}

/// All caches read the first one's greedy tokens (teacher-forced), and their distributions are compared with its.
void compare_teacher_forced(winnow::Session& session, std::vector<winnow::Asked>& asked, int steps,
                            std::vector<Row>& rows) {
  const auto vocabulary = static_cast<std::size_t>(session.model().info().n_vocab);
  std::vector<winnow::Cache*> batch;
  for (auto& a : asked) batch.push_back(&a.cache);
  std::vector<float> next(batch.size() * vocabulary);
  for (int step = 0; step < steps; ++step) {
    const winnow::eval::Reference first(asked[0].logits);
    for (std::size_t i = 0; i < asked.size(); ++i) first.compare(asked[i].logits, rows[i].fidelity);
    session.step(batch, std::vector<Token>(batch.size(), static_cast<Token>(best(asked[0].logits))), next);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto from = std::span(next).subspan(i * vocabulary, vocabulary);
      asked[i].logits.assign(from.begin(), from.end());
    }
  }
}

/// Lets all answer for themselves and takes the answers back.
void answer(winnow::Session& session, std::vector<winnow::Asked>& asked, const winnow::eval::Sample& sample,
            std::vector<Row>& rows) {
  std::vector<winnow::Cache*> caches;
  std::vector<winnow::CacheMark> marks;
  std::vector<std::vector<float>> logits;
  for (auto& a : asked) {
    caches.push_back(&a.cache);
    marks.push_back(a.cache.mark());
    logits.push_back(a.logits);
  }
  winnow::GenerateOptions with;
  with.max_tokens = sample.max_tokens;
  const auto answers = winnow::generate(session, caches, logits, with);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    rows[i].score = winnow::eval::score(sample, answers[i].text);
    std::fprintf(stderr, "  %-34s %.2f  %s\n", rows[i].method.c_str(), rows[i].score, answers[i].text.c_str());
    asked[i].cache.go_back(std::move(marks[i]));
  }
}

std::vector<Row> run_task(winnow::Session& session, const Task& task, const Options& options) {
  Documents documents;
  for (const auto& text : task.documents)
    documents.push_back(winnow::documents::resident(
        winnow::documents::ingest(session, {"", winnow::ControlTokens::as_text, text}, {})));
  std::vector<winnow::Asked> asked;
  std::vector<Row> rows;
  double kept = 0.25;
  for (const auto& method : options.methods) {
    Row row{method, {}};
    const auto with = options_of(method, kept, count_tokens(task, std::string::npos));
    row.seconds =
        winnow::bench::seconds_of([&] { asked.push_back(winnow::ask(session, documents, task.question, with)); });
    row.kept = asked.back().sequence_ratio;
    row.recomputed = asked.back().recompute_ratio;
    if (method == "samkv") kept = row.kept;
    rows.push_back(row);
  }
  answer(session, asked, task.sample, rows);
  compare_teacher_forced(session, asked, options.steps, rows);
  return rows;
}

void print(const std::string& file, int question, const std::vector<Row>& rows) {
  for (const auto& r : rows) {
    std::printf("%s,%d,\"%s\",%.6f,%.4f,%.4f,%.4f,%.4f,%.3f\n", file.c_str(), question, r.method.c_str(),
                r.fidelity.divergence / r.fidelity.steps, static_cast<double>(r.fidelity.agreed) / r.fidelity.steps,
                r.score, r.kept, r.recomputed, r.seconds);
  }
  std::fflush(stdout);
}

void run(const Options& options) {
  const auto model = winnow::Model::load(options.model);
  winnow::Session session(model, {options.threads});
  std::printf("file,question,method,KL,agreement,score,kept,recomputed,seconds\n");
  for (const auto& path : options.files) {
    std::ifstream file(path);
    std::string line;
    for (int question = 0; question < options.first + options.questions && std::getline(file, line); ++question) {
      if (question < options.first) continue;
      const auto task = task_of(*model, line, options);
      const auto name = std::filesystem::path(path).filename().string();
      std::fprintf(stderr, "%s, question %d: %zu documents, %zu tokens; %s\n", name.c_str(), question,
                   task.documents.size(), count_tokens(task, std::string::npos),
                   task.sample.references.front().c_str());
      print(name, question, run_task(session, task, options));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("how near each method of asking over several documents stays to one joint prefill");
  Options options;
  app.add_option("MODEL", options.model)->required();
  app.add_option("FILES", options.files, ".jsonl files with documents, a question and answers in each line")
      ->required();
  app.add_option("--method", options.methods,
                 "what is compared; the others read the first one's answer (teacher-forced)");
  app.add_option("--first", options.first, "question of each file to begin with, from 0");
  app.add_option("--questions", options.questions, "of each file");
  app.add_option("--tokens", options.tokens, "of all documents of a question: longer ones are cut");
  app.add_option("--steps", options.steps, "tokens that are compared");
  app.add_option("--threads", options.threads);
  return winnow::bench::run_program(app, argc, argv, [&] { run(options); });
}
