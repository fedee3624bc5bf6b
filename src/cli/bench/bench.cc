// SPDX-License-Identifier: Apache-2.0
#include "benchmark/bench.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <random>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/cores.h"
#include "cli/arguments.h"
#include "cli/bench/rows.h"
#include "cli/cache_lists.h"
#include "cli/commands.h"
#include "cli/counts.h"
#include "cli/lists.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow::cli {

namespace {

/// Options as CLI11 sets them, before they are checked.
struct RawBench {
  CommonArguments common;
  CommonOptions options;
  benchmark::BenchOptions bench;
  CacheLists caches;
  std::vector<std::string> engines = {"winnow", "llama.cpp", "llama.cpp-fa"};
  std::string form = "md";
};

void add_bench_options(CLI::App& bench, RawBench& r) {
  auto& p = r.bench;
  p.prompts = {512};
  p.generations = {128};
  const auto counts = [&bench](const char* name, std::vector<int>& to, const char* what) {
    return as_split_list(bench.add_option(name, to, what), kNumbers)->check(counts_from(0));
  };
  counts("-p,--n-prompt", p.prompts, "tokens to read, 0: none; each number of a list is a test");
  counts("-n,--n-gen", p.generations, "tokens to decode, 0: none");
  counts("-d,--n-depth", p.depths, "tokens that are in the cache before");
  counts("-b,--batch", p.batches, "sequences that are decoded together")->check(counts_from(1));
  counts("--beside", p.beside,
         "run each test also beside this many copies of itself on the same cores, each with weights and threads of its "
         "own")
      ->check(counts_from(1));
  add_cache_lists(bench, r.caches);
  as_split_list(bench.add_option("--engine", r.engines, "winnow, llama.cpp, llama.cpp-fa (with flash attention)"),
                kWords);
  bench.add_option("-r,--repetitions", p.repetitions, "repetitions of each test; engines take turns")
      ->check(counts_from(1));
  bench.add_option("-f,--file", r.options.file,
                   "text to read instead of random tokens; the cost of some methods depends on it");
  bench.add_option("-o,--output", r.form, "format of the results: md, csv or json")
      ->check(CLI::IsMember({"md", "csv", "json"}));
}

/// Checks the arguments before a model is loaded.
void check(RawBench& r) {
  check_common(r.common, r.options);
  auto& p = r.bench;
  const auto is_none = [](int n) { return n == 0; };
  std::erase_if(p.prompts, is_none);
  std::erase_if(p.generations, is_none);
  if (p.prompts.empty() && p.generations.empty())
    throw UsageError("nothing to measure: give a number of tokens to read (-p) or to decode (-n)");
  p.caches = crossed(r.caches, kProtocols);
  for (const auto& name : r.engines) p.engines.push_back(benchmark::parse_engine(name));
  p.session = r.options.session;
  p.loading = r.options.loading;
  if (p.session.threads == 0) p.session.threads = usable_cores();
}

std::vector<Token> random_tokens(const Model& model, int count) {
  std::mt19937 random(1);
  std::uniform_int_distribution<Token> any(3, model.info().n_vocab - 1);
  std::vector<Token> out(count);
  for (Token& token : out) token = any(random);
  return out;
}

std::vector<Token> tokens_of_file(const Model& model, const std::string& path, int count) {
  constexpr std::size_t kLongestToken = 16;  // nearly all tokens of a text are shorter
  const auto needed = as_size(count);
  auto out = model.vocab().tokenize(read_text(path).substr(0, needed * kLongestToken));
  if (out.size() < needed)
    throw InputError(fmt::format("{} has {} tokens, but the longest test needs {}", path, out.size(), needed));
  out.resize(needed);
  return out;
}

benchmark::Progress progress_on_terminal(int repetitions, const benchmark::Roofline& roofline) {
  benchmark::Progress out;
  out.roofline = roofline;
  out.stop = interrupted;
  if (isatty(STDERR_FILENO) == 0) return out;
  out.on_repetition = [repetitions, begin = Clock::now()](const benchmark::Row& row, int repetition, double done) {
    std::fprintf(stderr, "\r\033[K%s %s: %s %d at depth %d%s, repetition %d of %d%s", benchmark::name_of(row.engine),
                 method_label(row.cache.spec.print()).c_str(), row.prompt > 0 ? "reading" : "decoding",
                 row.prompt + row.generation, row.depth,
                 row.beside > 0 ? fmt::format(" beside {}", row.beside).c_str() : "", repetition, repetitions,
                 time_left(begin, done).c_str());
    std::fflush(stderr);
  };
  return out;
}

void run_bench(RawBench& r) {
  check(r);
  const auto model = Model::load(path_of(r.options.model), r.options.loading);
  const int count = benchmark::tokens_of(r.bench);
  r.bench.tokens =
      r.options.file.empty() ? random_tokens(*model, count) : tokens_of_file(*model, r.options.file, count);
  const BenchSetting setting{model->info(), r.bench.session.threads,
                             benchmark::measure_roofline(r.bench.session.threads)};
  const auto rows = benchmark::run(model, r.bench, progress_on_terminal(r.bench.repetitions, setting.roofline));
  if (isatty(STDERR_FILENO) != 0) std::fputs("\r\033[K", stderr);
  const auto form = r.form == "md" ? RowForm::md : r.form == "csv" ? RowForm::csv : RowForm::json;
  form == RowForm::json ? write_stdout(print_rows(rows, setting, form)) : show(print_rows(rows, setting, form));
  if (interrupted()) throw Interrupted("interrupted");
}

}  // namespace

void add_bench(CLI::App& app) {
  auto* const bench =
      app.add_subcommand("bench", "measure speed and memory, and those of llama.cpp in the same process");
  const auto raw = std::make_shared<RawBench>();
  add_measuring_options(*bench, raw->common, raw->options);
  add_bench_options(*bench, *raw);
  bench->footer(
      "Example:\n  winnow bench -m model.gguf -p 512,8192 -n 0\n"
      "  winnow bench -m model.gguf -p 0 -n 128 -d 8192 --kv full,snapkv,quest --budget 512 -r 3\n"
      "  winnow bench -m model.gguf -p 0 -n 64 --beside 1");
  bench->callback([raw] { run_bench(*raw); });
}

}  // namespace winnow::cli
