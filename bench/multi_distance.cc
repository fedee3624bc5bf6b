// How near each method of asking over several documents stays to one joint prefill: recompute's greedy answer is forced through all of
// them, and their distributions are compared.
//   winnow_multi_distance MODEL FILE.jsonl … [--questions 10] [--tokens 8000] [--steps 32] [--method samkv --method epic]
// Each line of a file has "question" and "documents". The joint sequence: each document and a blank line, then "Question: … Answer:".
// Prints one CSV row for each method: mean KL(recompute || method) in nats, share of steps with the same best token, ratios of kept and
// recomputed entries, seconds to the first token.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compositions.h"
#include "divergence.h"
#include "multi/resident.h"
#include "times.h"
#include "winnow/ask.h"

namespace {

using winnow::Token;
using winnow::bench::best;
using winnow::bench::Fidelity;
using Documents = std::vector<std::shared_ptr<const winnow::multi::Document>>;

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
  int questions = 10;  ///< of each file
  int tokens = 8000;   ///< longer ones are left out
  int steps = 32;
  int threads = 0;
};

struct Row {
  std::string method;
  Fidelity fidelity;
  double kept = 0;
  double recomputed = 0;
  double seconds = 0;
  int questions = 0;
};

struct Task {
  std::vector<std::vector<Token>> documents;
  std::vector<Token> question;
  std::size_t tokens = 0;
};

Task task_of(const winnow::Model& model, const std::string& line) {
  const auto json = nlohmann::json::parse(line);
  Task task;
  for (const auto& text : json.at("documents")) {
    task.documents.push_back(model.tokenize(text.get<std::string>() + "\n\n"));
    task.tokens += task.documents.back().size();
  }
  task.question = model.tokenize("Question: " + json.at("question").get<std::string>() + "\nAnswer:");
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

/// Forces the first cache's greedy tokens through all.
void follow(winnow::Session& session, std::vector<winnow::Asked>& asked, int steps, std::vector<Row>& rows) {
  const auto vocabulary = static_cast<std::size_t>(session.model().info().n_vocab);
  std::vector<winnow::Cache*> batch;
  for (auto& a : asked) batch.push_back(&a.cache);
  std::vector<float> next(batch.size() * vocabulary);
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < asked.size(); ++i) winnow::bench::compare(asked[0].logits, asked[i].logits, rows[i].fidelity);
    session.step(batch, std::vector<Token>(batch.size(), static_cast<Token>(best(asked[0].logits))), next);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const auto from = std::span(next).subspan(i * vocabulary, vocabulary);
      asked[i].logits.assign(from.begin(), from.end());
    }
  }
}

void run_task(winnow::Session& session, const Task& task, const Options& options, std::vector<Row>& rows) {
  Documents documents;
  for (const auto& text : task.documents)
    documents.push_back(winnow::multi::resident(winnow::multi::ingest(session, {"", winnow::ControlTokens::as_text, text}, {})));
  std::vector<winnow::Asked> asked;
  double kept = 0.25;
  for (auto& row : rows) {
    const auto with = options_of(row.method, kept, task.tokens);
    row.seconds += winnow::bench::seconds_of([&] { asked.push_back(winnow::ask(session, documents, task.question, with)); });
    row.kept += asked.back().sequence_ratio;
    row.recomputed += asked.back().recompute_ratio;
    ++row.questions;
    if (row.method == "samkv") kept = asked.back().sequence_ratio;
  }
  follow(session, asked, options.steps, rows);
}

void print(const std::vector<Row>& rows) {
  std::printf("method,questions,KL,top-1 agreement,kept,recomputed,seconds\n");
  for (const auto& r : rows) {
    std::printf("\"%s\",%d,%.4f,%.4f,%.4f,%.4f,%.3f\n", r.method.c_str(), r.questions, r.fidelity.divergence / r.fidelity.steps,
                static_cast<double>(r.fidelity.agreed) / r.fidelity.steps, r.kept / r.questions, r.recomputed / r.questions,
                r.seconds / r.questions);
  }
  std::fflush(stdout);
}

void run(const Options& options) {
  const auto model = winnow::Model::load(options.model);
  winnow::Session session(model, {options.threads});
  std::vector<Row> rows;
  for (const auto& method : options.methods) rows.push_back({method, {}});
  for (const auto& path : options.files) {
    std::ifstream file(path);
    std::string line;
    for (int done = 0; done < options.questions && std::getline(file, line);) {
      const auto task = task_of(*model, line);
      if (static_cast<int>(task.tokens) > options.tokens) continue;
      std::fprintf(stderr, "%s: question %d, %zu documents of %zu tokens\n", path.c_str(), ++done, task.documents.size(), task.tokens);
      run_task(session, task, options, rows);
    }
  }
  print(rows);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("how near each method of asking over several documents stays to one joint prefill");
  Options options;
  app.add_option("MODEL", options.model)->required();
  app.add_option("FILES", options.files, ".jsonl files with a question and documents in each line")->required();
  app.add_option("--method", options.methods, "what is compared; the first one's answer is forced");
  app.add_option("--questions", options.questions, "of each file");
  app.add_option("--tokens", options.tokens, "most tokens of all documents of a question");
  app.add_option("--steps", options.steps, "tokens that are compared");
  app.add_option("--threads", options.threads);
  return winnow::bench::run_program(app, argc, argv, [&] { run(options); });
}
