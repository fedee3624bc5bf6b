// SPDX-License-Identifier: Apache-2.0
// Questions per second over a store of many documents, for one asker and for several at once. Checks that all get the
// answers that one alone gets.
//   winnow_store_asks MODEL TEXT [--documents 200] [--length 64] [--askers 8] [--asks 32] [--method samkv --method
//   reuse]
// The text is cut into documents. They are stored in a folder and, if redis-server is installed, on a server that this
// program starts. Every question is about three documents, opened by name; an asker has its own session with one
// thread, which waits actively. Prints a CSV row for each store and method: asks per second of one asker and of all,
// the best of interleaved repetitions.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "program.h"
#include "store/redis_server.h"
#include "support/temp.h"
#include "times.h"
#include "winnow/ask.h"
#include "winnow/documents.h"
#include "winnow/error.h"

namespace {

using winnow::Token;
using Logits = std::vector<std::vector<float>>;  ///< [ask]

struct Options {
  std::string model;
  std::string text;
  std::vector<std::string> methods = {"samkv", "reuse"};
  int documents = 200;
  int length = 64;
  int askers = 8;
  int asks = 32;
  int repetitions = 2;
};

std::size_t z(int i) { return static_cast<std::size_t>(i); }
std::string name_of(int document) { return "piece " + std::to_string(document); }

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw winnow::InputError("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Adds the pieces of the text to one store, and copies them to the other.
void fill(winnow::DocumentStore& folder, winnow::DocumentStore* server, winnow::Session& session,
          const Options& options) {
  const auto all = session.model().vocab().tokenize(contents(options.text));
  const winnow::test::TempFolder temporary;
  if (all.size() < z(options.documents) * z(options.length)) throw winnow::InputError(options.text + " is too short");
  for (int i = 0; i < options.documents; ++i) {
    const auto begin = all.begin() + i * options.length;
    folder.add(session, {name_of(i), {}, {"", winnow::ControlTokens::as_text, {begin, begin + options.length}}});
    if (server == nullptr) continue;
    folder.export_to(name_of(i), temporary / "document");
    server->import_from(temporary / "document");
  }
}

class Askers {
 public:
  Askers(const std::shared_ptr<const winnow::Model>& model, const Options& options) : options_(options) {
    for (int i = 0; i < options.askers; ++i)
      sessions_.push_back(std::make_unique<winnow::Session>(model, winnow::SessionOptions{1}));
  }

  /// `askers` threads share the questions; each takes the next one when it has an answer.
  Logits run(winnow::DocumentStore& store, const std::string& method, int askers) {
    Logits out(z(options_.asks));
    std::atomic<int> next{0};
    const auto work = [&](winnow::Session& session) {
      for (int i = next++; i < options_.asks; i = next++) out[i] = ask(store, session, method, i);
    };
    std::vector<std::future<void>> working;
    for (int i = 0; i < askers; ++i) working.push_back(std::async(std::launch::async, work, std::ref(*sessions_[i])));
    for (auto& one : working) one.get();
    return out;
  }

 private:
  std::vector<float> ask(winnow::DocumentStore& store, winnow::Session& session, const std::string& method,
                         int number) const {
    std::vector<std::shared_ptr<const winnow::documents::Document>> documents;
    for (int i = 0; i < 3; ++i)
      documents.push_back(store.open(name_of((number * 37 + i * 61) % options_.documents), session));
    winnow::AskOptions how;
    how.method = winnow::AskSpec::parse(method);
    const auto question =
        session.model().vocab().tokenize("\nQuestion " + std::to_string(number) + ": who is spoken of?\nAnswer:");
    return winnow::ask(session, documents, question, how).logits;
  }

  const Options& options_;
  std::vector<std::unique_ptr<winnow::Session>> sessions_;
};

/// Throws if an answer differs from the expected one.
void compare(const Logits& got, const Logits& expected, const std::string& what) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != expected[i])
      throw winnow::InputError("ask " + std::to_string(i) + " by " + what + " has another answer");
  }
}

struct Row {
  winnow::bench::Times alone;
  winnow::bench::Times together;
};

void measure(Askers& askers, std::vector<winnow::DocumentStore*> stores, const std::string& method,
             const Options& options) {
  Logits expected;
  std::vector<Row> rows(stores.size());
  for (int i = 0; i < options.repetitions; ++i) {
    for (std::size_t s = 0; s < stores.size(); ++s) {
      Logits got;
      rows[s].alone.add(winnow::bench::seconds_of([&] { got = askers.run(*stores[s], method, 1); }));
      if (expected.empty()) expected = got;
      compare(got, expected, "one asker");
      rows[s].together.add(winnow::bench::seconds_of([&] { got = askers.run(*stores[s], method, options.askers); }));
      compare(got, expected, "one of many askers");
    }
  }
  for (std::size_t s = 0; s < stores.size(); ++s) {
    const double alone = options.asks / rows[s].alone.least();
    const double together = options.asks / rows[s].together.least();
    std::printf("%s,%s,%.2f,%.2f,%.2f\n", s == 0 ? "folder" : "redis", method.c_str(), alone, together,
                together / alone);
    std::fflush(stdout);
  }
}

void run(const Options& options) {
  const auto model = winnow::Model::load(options.model);
  const winnow::test::TempFolder temporary;
  winnow::DocumentStore folder(temporary / "documents");
  std::optional<winnow::test::RedisServer> redis;
  std::optional<winnow::DocumentStore> server;
  if (winnow::test::RedisServer::is_installed()) {
    redis.emplace();
    server.emplace(redis->url());
  } else {
    std::fprintf(stderr, "redis-server is not installed: the shared store is left out\n");
  }
  {
    winnow::Session session(model, {});
    fill(folder, server ? &*server : nullptr, session, options);
  }
  Askers askers(model, options);
  std::printf("store,method,asks/s of 1 asker,asks/s of %d,ratio\n", options.askers);
  std::vector<winnow::DocumentStore*> stores{&folder};
  if (server) stores.push_back(&*server);
  for (const auto& method : options.methods) measure(askers, stores, method, options);
  std::printf("all %d answers to each question are the same\n",
              2 * options.repetitions * static_cast<int>(stores.size()));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("how many questions over a store of many documents are answered in a second");
  Options options;
  app.add_option("MODEL", options.model)->required();
  app.add_option("TEXT", options.text, "what documents are cut from")->required();
  app.add_option("--documents", options.documents, "how many documents")->check(CLI::PositiveNumber);
  app.add_option("--length", options.length, "tokens of each")->check(CLI::PositiveNumber);
  app.add_option("--askers", options.askers, "who ask at once")->check(CLI::PositiveNumber);
  app.add_option("--asks", options.asks, "questions, which they share")->check(CLI::PositiveNumber);
  app.add_option("--repetitions", options.repetitions)->check(CLI::PositiveNumber);
  app.add_option("--method", options.methods, "how documents are put together");
  return winnow::bench::run_program(app, argc, argv, [&] { run(options); });
}
