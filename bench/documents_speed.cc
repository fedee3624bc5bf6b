// SPDX-License-Identifier: Apache-2.0
// The time of asking over several documents beside one joint prefill: interleaved repetitions over documents of equal
// length.
//   winnow_documents_speed MODEL [--documents 8] [--length 900] [--repetitions 3] [--method recompute --method samkv]
// Prints a CSV row for each method: seconds to the first token (minimum, median, and the ratio to the first method);
// the cache's bytes relative to the joint full f16 cache; kept and recomputed shares; and each stage. Then prints the
// time of reading a document beside its plain prefill.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "documents/resident.h"
#include "program.h"
#include "times.h"
#include "winnow/ask.h"

namespace {

using winnow::Token;
using Documents = std::vector<std::shared_ptr<const winnow::documents::Document>>;

struct Options {
  std::string model;
  std::vector<std::string> methods = {"recompute", "samkv", "samkv:recompute=off", "cacheblend", "epic", "reuse"};
  int documents = 8;
  int length = 900;
  int repetitions = 3;
  int threads = 0;
};

struct Row {
  winnow::bench::Times times;
  std::map<std::string, winnow::bench::Times> phases;
  double bytes = 0;
  double kept = 0;
  double recomputed = 0;
};

/// Different words for each document, so that keys differ.
std::vector<Token> text_of(const winnow::Model& model, int number, int length) {
  std::string text;
  for (int i = 0; i < length; ++i)
    text += "Line " + std::to_string(i * (number + 3) % 97) + " of report " + std::to_string(number) + ". ";
  auto tokens = model.vocab().tokenize(text);
  tokens.resize(length);
  return tokens;
}

void ask_once(winnow::Session& session, const Documents& documents, std::span<const Token> question,
              const std::string& method, Row& row) {
  winnow::AskOptions options;
  options.method = winnow::AskSpec::parse(method);
  row.times.add(winnow::bench::seconds_of([&] {
    const auto asked = winnow::ask(session, documents, question, options);
    const auto stats = asked.cache.stats();
    row.bytes = static_cast<double>(stats.bytes_held) / static_cast<double>(stats.bytes_full);
    row.kept = asked.sequence_ratio;
    row.recomputed = asked.recompute_ratio;
    for (const auto& phase : asked.phases) row.phases[phase.name].add(phase.seconds);
  }));
}

void print(const Options& options, std::map<std::string, Row>& rows) {
  std::printf("method,least s,median s,ratio,bytes ratio,kept,recomputed,stages\n");
  const double first = rows[options.methods.front()].times.least();
  for (const auto& method : options.methods) {
    const auto& r = rows[method];
    std::printf("\"%s\",%.3f,%.3f,%.3f,%.3f,%.3f,%.3f,", method.c_str(), r.times.least(), r.times.median(),
                r.times.least() / first, r.bytes, r.kept, r.recomputed);
    for (const auto& [name, times] : r.phases) std::printf("%s %.4f ", name.c_str(), times.least());
    std::printf("\n");
  }
}

void run(const Options& options) {
  const auto model = winnow::Model::load(options.model);
  winnow::Session session(model, {options.threads});
  Documents documents;
  const winnow::CacheOptions full;
  winnow::bench::Times plain;
  winnow::bench::Times reading;
  for (int i = 0; i < options.documents; ++i) {
    const auto text = text_of(*model, i, options.length);
    plain.add(winnow::bench::seconds_of([&] { session.prefill(text, std::span(&full, 1)); }));
    reading.add(winnow::bench::seconds_of([&] {
      documents.push_back(winnow::documents::resident(
          winnow::documents::ingest(session, {"", winnow::ControlTokens::as_text, text}, {})));
    }));
  }
  std::printf("reading a document of %d tokens: %.3f s, its plain prefill %.3f s, ratio %.3f (least), %.3f (median)\n",
              options.length, reading.least(), plain.least(), reading.least() / plain.least(),
              reading.median() / plain.median());
  std::fflush(stdout);
  const auto question =
      model->vocab().tokenize("Question: which line of which report comes after line 12 of report 3?\nAnswer:");
  std::map<std::string, Row> rows;
  for (int i = 0; i < options.repetitions; ++i) {
    for (const auto& method : options.methods) ask_once(session, documents, question, method, rows[method]);
  }
  print(options, rows);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("what asking over several documents costs beside one joint prefill");
  Options options;
  app.add_option("MODEL", options.model)->required();
  app.add_option("--method", options.methods, "what is timed; ratios are to the first");
  app.add_option("--documents", options.documents, "number of documents");
  app.add_option("--length", options.length, "tokens of each");
  app.add_option("--repetitions", options.repetitions);
  app.add_option("--threads", options.threads);
  return winnow::bench::run_program(app, argc, argv, [&] { run(options); });
}
