// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/contender.h"
#include "benchmark/roofline.h"

namespace winnow::benchmark {

enum class Engine : std::uint8_t { winnow, llama_cpp, llama_cpp_fa };

/// Parses `winnow`, `llama.cpp` or `llama.cpp-fa`. Throws UsageError that lists them.
Engine parse_engine(const std::string& name);
const char* name_of(Engine engine);

/// Tests to run: all combinations of the lists.
struct BenchOptions {
  std::vector<int> prompts;      ///< tokens to read; empty: no such tests
  std::vector<int> generations;  ///< tokens that each sequence decodes; empty: no such tests
  std::vector<int> depths = {0};
  std::vector<int> batches = {1};    ///< numbers of sequences that decode together; a prompt is read for one
  std::vector<int> beside;           ///< numbers of other runs of a test beside it; each test also runs alone
  std::vector<CacheOptions> caches;  ///< winnow's; its peers keep everything
  std::vector<Engine> engines;
  std::vector<Token> tokens;  ///< read and decoded, from the first; as many as the longest test needs
  int repetitions = 5;
  SessionOptions session;
  ModelOptions loading;  ///< options with which `model` was loaded; runs beside it load their own weights with them
};

/// Number of tokens that the longest test needs.
int tokens_of(const BenchOptions& options);

/// Reading of the depth before a test, once and without a warm-up, and copying it to all sequences.
struct DepthReading {
  double seconds = 0;
  Work work;
};

/// One test of one engine and cache.
struct Row {
  Engine engine = Engine::winnow;
  CacheOptions cache;
  int batch = 1;
  int prompt = 0;      ///< tokens to read, or 0
  int generation = 0;  ///< tokens that each sequence decodes, or 0
  int depth = 0;
  int beside = 0;  ///< number of other runs of the same engine, cache and test at the same time
  DepthReading before;
  std::vector<double> seconds;  ///< of each repetition
  Bytes bytes;
  Work work;

  double tokens() const { return static_cast<double>(prompt) + static_cast<double>(generation) * batch; }
};

/// Median of the repetitions' seconds.
double median_seconds(const Row& row);

struct Progress {
  /// Called before each repetition, from 1. `done`: finished share of all repetitions of all tests, by their times at
  /// the roofline.
  std::function<void(const Row& row, int repetition, double done)> on_repetition;
  std::function<bool()> stop;  ///< true ends the benchmark
  Roofline roofline;           ///< of this machine
};

/// Measures all tests. The contenders of a test take turns, after a warm-up round. Other runs beside a test are threads
/// of this process with their own weights, sequences and thread pools. Each has as many threads as the measured one, as
/// separate programs would have. If the benchmark is stopped, rows have fewer repetitions or are missing. Throws what
/// the engines throw.
std::vector<Row> run(std::shared_ptr<const Model> model, const BenchOptions& options, const Progress& progress);

}  // namespace winnow::benchmark
