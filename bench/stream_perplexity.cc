// SPDX-License-Identifier: Apache-2.0
// Perplexity of a long text or conversation that is read token by token through a per-step method, far beyond the
// context a model was trained with. Prints one CSV row for each window of tokens: position, perplexity of the window,
// bytes held, time per token: elapsed, and of all processors together, which other work on the machine disturbs less.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "program.h"
#include "winnow/error.h"
#include "winnow/session.h"

namespace {

struct Options {
  std::string model;
  std::string text;
  std::string spec;
  std::string budget;
  std::size_t tokens = 0;
  std::size_t window = 1000;
  int threads = 0;
  bool chat = false;
};

double log_probability(const std::vector<float>& logits, winnow::Token token) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  const double sum =
      std::accumulate(logits.begin(), logits.end(), 0.0, [&](double s, float x) { return s + std::exp(x - largest); });
  return logits[token] - largest - std::log(sum);
}

/// Each line is a message, alternately the user's and the model's.
winnow::Conversation conversation(std::istream& lines, std::size_t bytes) {
  winnow::Conversation out;
  std::size_t read = 0;
  for (std::string line; read < bytes && std::getline(lines, line); read += line.size()) {
    const auto role = out.messages.size() % 2 == 0 ? winnow::Role::user : winnow::Role::assistant;
    if (!line.empty()) out.messages.push_back({role, line});
  }
  if (!out.messages.empty() && out.messages.back().role == winnow::Role::assistant) out.messages.pop_back();
  return out;
}

std::vector<winnow::Token> tokens_of(const winnow::Model& model, const Options& options) {
  std::ifstream file(options.text, std::ios::binary);
  if (!file) throw winnow::InputError("cannot read " + options.text);
  const std::size_t bytes = options.tokens * 8;  // tokens are rarely longer
  std::vector<winnow::Token> ids;
  if (options.chat) {
    ids = model.tokenize(conversation(file, bytes));
  } else {
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    ids = model.vocab().tokenize(std::string_view(text).substr(0, bytes));
  }
  if (ids.size() < options.tokens)
    throw winnow::InputError("the text has only " + std::to_string(ids.size()) + " tokens");
  ids.resize(options.tokens);
  return ids;
}

/// Measures the time since the last call.
class Stopwatch {
 public:
  struct Times {
    double elapsed_ms;
    double cpu_ms;
  };
  Times lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::clock_t cpu = std::clock();
    const Times times{std::chrono::duration<double, std::milli>(now - begin_).count(),
                      1000.0 * static_cast<double>(cpu - cpu_begin_) / CLOCKS_PER_SEC};
    begin_ = now;
    cpu_begin_ = cpu;
    return times;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::clock_t cpu_begin_ = std::clock();
};

void run(const Options& options) {
  winnow::CacheOptions how;
  how.spec = winnow::Spec::parse(options.spec);
  if (how.spec != winnow::Spec()) how.budget = winnow::Budget::parse(options.budget);
  const auto model = winnow::Model::load(options.model);
  const auto ids = tokens_of(*model, options);
  winnow::SessionOptions session_options;
  session_options.threads = options.threads;
  winnow::Session session(model, session_options);
  auto prefilled = session.prefill(std::span(ids).first(1), std::span(&how, 1));
  auto& cache = prefilled.caches.front();
  auto logits = prefilled.logits;
  std::printf("position,perplexity,bytes_held,ms_per_token,cpu_ms_per_token\n");
  double sum = 0;
  Stopwatch watch;
  for (std::size_t i = 1; i < ids.size(); ++i) {
    sum += log_probability(logits, ids[i]);
    winnow::Cache* const one = &cache;
    session.step(std::span(&one, 1), std::span(ids).subspan(i, 1), logits);
    if (i % options.window != 0) continue;
    const auto times = watch.lap();
    const auto n = static_cast<double>(options.window);
    std::printf("%zu,%.3f,%zu,%.2f,%.2f\n", i, std::exp(-sum / n), cache.stats().bytes_held, times.elapsed_ms / n,
                times.cpu_ms / n);
    std::fflush(stdout);
    sum = 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("perplexity, bytes and speed of a per-step method along a long text");
  Options options;
  app.add_option("MODEL", options.model)->required();
  app.add_option("TEXT", options.text)->required();
  app.add_option("SPEC", options.spec)->required();
  app.add_option("BUDGET", options.budget)->required();
  app.add_option("TOKENS", options.tokens, "of the text")->required();
  app.add_option("--window", options.window, "tokens of one row")->check(CLI::PositiveNumber);
  app.add_option("--threads", options.threads);
  app.add_flag(
      "--chat", options.chat,
      "the text's lines are messages, alternately the user's and the model's: put them into the model's template");
  return winnow::bench::run_program(app, argc, argv, [&] { run(options); });
}
