// SPDX-License-Identifier: Apache-2.0
// Time from program start to the first token of a short prompt: loading the model, making a session and reading, by
// winnow and llama.cpp in turns.
//   winnow_start_speed MODEL [--tokens 16] [--repetitions 9] [--threads 0] [--cold]
// Prints a CSV row for each: milliseconds to the end of loading and to the first token, minimum and median.
// --cold: asks the system before each run to drop the file's pages from its cache.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "base/cores.h"
#include "benchmark/llama_cpp.h"
#include "program.h"
#include "times.h"
#include "winnow/session.h"

namespace {

using winnow::Token;
using winnow::bench::seconds_of;

struct Options {
  std::string model;
  int tokens = 16;
  int repetitions = 9;
  int threads = 0;
  bool cold = false;
};

struct Row {
  winnow::bench::Times loading;
  winnow::bench::Times first_token;
};

void drop_pages(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
    std::fprintf(stderr, "%s: its pages cannot be dropped\n", path.c_str());
  if (file >= 0) close(file);
}

void add(double loading, double reading, Row& row) {
  row.loading.add(loading);
  row.first_token.add(loading + reading);
}

void start_winnow(const Options& o, std::span<const Token> prompt, Row& row) {
  std::shared_ptr<const winnow::Model> model;
  const double loading = seconds_of([&] { model = winnow::Model::load(o.model, {}); });
  add(loading, seconds_of([&] {
        winnow::SessionOptions options;
        options.threads = o.threads;
        winnow::Session session(model, options);
        const winnow::CacheOptions full;
        session.prefill(prompt, std::span(&full, 1));
      }),
      row);
}

void start_llama(const Options& o, std::span<const Token> prompt, Row& row) {
  std::shared_ptr<llama_model> model;
  const double loading = seconds_of([&] { model = winnow::benchmark::Llama::load(o.model); });
  add(loading, seconds_of([&] {
        winnow::benchmark::LlamaOptions options;
        options.threads = o.threads;
        winnow::benchmark::Llama(std::move(model), options).decode(prompt);
      }),
      row);
}

void measure(const Options& o) {
  const std::vector<Token> prompt(o.tokens, 1);
  Row rows[2];
  for (int i = 0; i < o.repetitions; ++i) {
    if (o.cold) drop_pages(o.model);
    start_winnow(o, prompt, rows[0]);
    if (o.cold) drop_pages(o.model);
    start_llama(o, prompt, rows[1]);
  }
  std::puts("engine,loading_ms_least,loading_ms_median,first_token_ms_least,first_token_ms_median");
  const char* const names[] = {"winnow", "llama.cpp"};
  for (int i = 0; i < 2; ++i) {
    std::printf("%s,%.1f,%.1f,%.1f,%.1f\n", names[i], 1e3 * rows[i].loading.least(), 1e3 * rows[i].loading.median(),
                1e3 * rows[i].first_token.least(), 1e3 * rows[i].first_token.median());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("from nothing to the first token, beside llama.cpp");
  Options o;
  app.add_option("MODEL", o.model)->required();
  app.add_option("--tokens", o.tokens, "of the prompt");
  app.add_option("--repetitions", o.repetitions);
  app.add_option("--threads", o.threads, "0: all cores");
  app.add_flag("--cold", o.cold, "drop the model file from the system's cache before each");
  return winnow::bench::run_program(app, argc, argv, [&] {
    if (o.threads == 0) o.threads = winnow::usable_cores();
    measure(o);
  });
}
