// SPDX-License-Identifier: Apache-2.0
#include "benchmark/bench.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/as_size.h"
#include "base/clock.h"
#include "benchmark/neighbours.h"
#include "winnow/error.h"

namespace winnow::benchmark {

namespace {

/// Other engines' thread pools keep polling for a while after their last graph.
constexpr std::chrono::milliseconds kUntilPoolsSleep{600};

constexpr Engine kEngines[] = {Engine::winnow, Engine::llama_cpp, Engine::llama_cpp_fa};

/// Tests with the same depth and number of sequences.
struct Point {
  int depth = 0;
  int batch = 1;
  std::vector<int> prompts;
  std::vector<int> generations;

  /// Decoding needs at least one token before it.
  int tokens_before() const { return generations.empty() ? depth : std::max(1, depth); }
  int longest_sequence() const {
    int out = 0;
    for (const int n : prompts) out = std::max(out, n);
    for (const int n : generations) out = std::max(out, n);
    return tokens_before() + out;
  }
};

std::vector<Point> points_of(const BenchOptions& options) {
  std::vector<Point> out;
  for (const int depth : options.depths) {
    if (!options.prompts.empty()) out.push_back({depth, 1, options.prompts, {}});
    if (options.generations.empty()) continue;
    for (const int batch : options.batches) out.push_back({depth, batch, {}, options.generations});
  }
  return out;
}

/// All tests of a point.
std::vector<Row> tests_of(const Point& point) {
  Row test;
  test.depth = point.depth;
  test.batch = point.batch;
  std::vector<Row> out;
  for (const int n : point.prompts) out.emplace_back(test).prompt = n;
  for (const int n : point.generations) out.emplace_back(test).generation = n;
  return out;
}

/// An engine with its options. The first contender is measured; the others can run beside it.
struct Side {
  Engine engine;
  CacheOptions cache;
  std::vector<std::unique_ptr<Contender>> contenders;
  DepthReading before;  ///< by the first contender
};

/// Models loaded for one run.
struct Loaded {
  std::shared_ptr<const Model> model;
  std::shared_ptr<llama_model> peer;
};

class Runner {
 public:
  Runner(std::shared_ptr<const Model> model, const BenchOptions& options, const Progress& progress)
      : options_(options), progress_(progress) {
    besides_.insert(besides_.end(), options.beside.begin(), options.beside.end());
    loaded_.resize(as_size(*std::max_element(besides_.begin(), besides_.end())) + 1);
    loaded_.front().model = std::move(model);
    for (const auto& point : points_of(options)) {
      for (const auto& test : tests_of(point)) least_of_all_ += least_seconds_of(test) * (options.repetitions + 1);
    }
    least_of_all_ *= static_cast<double>(sides_of_each_test().size() * besides_.size());
  }

  void measure(const Point& point) {
    auto sides = sides_of(point);
    const auto before = std::span<const Token>(options_.tokens).first(point.tokens_before());
    for (auto& side : sides) {
      for (auto& contender : side.contenders) {
        const auto begin = Clock::now();
        contender->start(before, point.batch);
        if (contender != side.contenders.front()) continue;
        side.before = {ms_since(begin) / 1000, work_of_reading(model(), point.depth, 0)};
      }
    }
    for (const auto& test : tests_of(point)) measure(sides, test);
  }

  std::vector<Row> take() { return std::move(rows_); }
  bool stopped() const { return progress_.stop && progress_.stop(); }

 private:
  /// One side for each cache of winnow and one for each peer, without contenders.
  std::vector<Side> sides_of_each_test() const {
    std::vector<Side> out;
    for (const Engine engine : options_.engines) {
      if (engine == Engine::winnow) {
        for (const auto& cache : options_.caches) out.push_back({engine, cache, {}, {}});
      } else {
        out.push_back({engine, {}, {}, {}});
      }
    }
    return out;
  }

  std::vector<Side> sides_of(const Point& point) {
    auto out = sides_of_each_test();
    for (auto& side : out) {
      for (auto& loaded : loaded_) side.contenders.push_back(contender_of(side, point, loaded));
    }
    return out;
  }

  std::unique_ptr<Contender> contender_of(const Side& side, const Point& point, Loaded& loaded) {
    if (side.engine != Engine::winnow) return peer_of(side.engine, point, loaded);
    if (loaded.model == nullptr) loaded.model = Model::load(model().info().path, options_.loading);
    return winnow_contender(loaded.model, options_.session, side.cache);
  }

  std::unique_ptr<Contender> peer_of(Engine engine, const Point& point, Loaded& loaded) {
    if (loaded.peer == nullptr)
      loaded.peer = benchmark::Llama::load(model().info().path, options_.loading.device.get());
    benchmark::LlamaOptions options;
    options.context = point.longest_sequence() * point.batch;
    options.sequences = point.batch;
    options.kv_buffers = benchmark::KvBuffers::one_each;
    options.threads = options_.session.threads;
    options.flash_attention =
        engine == Engine::llama_cpp_fa ? benchmark::FlashAttention::on : benchmark::FlashAttention::off;
    options.window_cache = benchmark::WindowCache::window;
    return llama_contender(loaded.peer, options,
                           [&info = model().info()](int tokens) { return info.full_cache_bytes(tokens); });
  }

  const Model& model() const { return *loaded_.front().model; }

  std::chrono::milliseconds pause() const {
    return options_.session.threads > 1 ? kUntilPoolsSleep : std::chrono::milliseconds(0);
  }

  /// Least time of one repetition of a test, with a full cache.
  double least_seconds_of(const Row& test) const {
    const auto cache = static_cast<double>(model().info().full_cache_bytes(test.depth + test.generation / 2));
    const auto work = test.prompt > 0 ? work_of_reading(model(), test.prompt, test.depth)
                                      : work_of_decoding(model(), test.generation, test.batch, test.batch * cache);
    return least_seconds(work, progress_.roofline) + std::chrono::duration<double>(pause()).count();
  }

  void measure(const std::vector<Side>& sides, Row test) {
    std::vector<Row> rows;
    for (const auto& side : sides) {
      test.engine = side.engine;
      test.cache = side.cache;
      test.before = side.before;
      for (const int beside : besides_) {
        test.beside = beside;
        rows.push_back(test);
      }
    }
    for (int repetition = 0; repetition <= options_.repetitions && !stopped(); ++repetition) {
      for (std::size_t i = 0; i < rows.size() && !stopped(); ++i)
        repeat(sides[i / besides_.size()].contenders, repetition, rows[i]);
    }
    for (auto& row : rows) {
      if (!row.seconds.empty()) rows_.push_back(std::move(row));
    }
  }

  void repeat(std::span<const std::unique_ptr<Contender>> contenders, int repetition, Row& row) {
    if (progress_.on_repetition && repetition > 0)
      progress_.on_repetition(row, repetition, least_of_done_ / least_of_all_);
    Contender& contender = *contenders.front();
    contender.restore();
    std::this_thread::sleep_for(pause());
    const auto seconds = seconds_of(contender, contenders.subspan(1, as_size(row.beside)), row);
    if (repetition > 0) row.seconds.push_back(seconds);  // the first round warms up memory and clocks
    least_of_done_ += least_seconds_of(row);
    row.bytes = contender.bytes();
    row.work = row.prompt > 0
                   ? work_of_reading(model(), row.prompt, row.depth)
                   : work_of_decoding(model(), row.generation, row.batch, static_cast<double>(row.bytes.read));
  }

  double seconds_of(Contender& contender, std::span<const std::unique_ptr<Contender>> others, const Row& row) const {
    Neighbours neighbours(others, [&](Contender& one, const std::atomic<bool>& enough) { work(one, row, enough); });
    const auto begin = Clock::now();
    work(contender, row, false);
    const auto seconds = ms_since(begin) / 1000;
    neighbours.finish();
    return seconds;
  }

  void work(Contender& contender, const Row& row, const std::atomic<bool>& enough) const {
    const auto after = std::span<const Token>(options_.tokens).subspan(row.depth);
    if (row.prompt > 0) contender.read(after.first(row.prompt));
    for (int i = 0; i < row.generation && !enough; ++i) contender.step(std::vector<Token>(row.batch, after[i]));
  }

  const BenchOptions& options_;
  const Progress& progress_;
  std::vector<int> besides_ = {0};
  std::vector<Loaded> loaded_;  ///< of the measured run, and of those beside it
  std::vector<Row> rows_;
  double least_of_all_ = 0;   ///< seconds of all repetitions at the roofline
  double least_of_done_ = 0;  ///< seconds of finished repetitions at the roofline
};

}  // namespace

Engine parse_engine(const std::string& name) {
  std::vector<const char*> all;
  for (const Engine engine : kEngines) {
    if (name == name_of(engine)) return engine;
    all.push_back(name_of(engine));
  }
  throw UsageError(fmt::format("there is no engine {} (there are {})", name, fmt::join(all, ", ")));
}

const char* name_of(Engine engine) {
  switch (engine) {
    case Engine::winnow:
      return "winnow";
    case Engine::llama_cpp:
      return "llama.cpp";
    case Engine::llama_cpp_fa:
      break;
  }
  return "llama.cpp-fa";
}

int tokens_of(const BenchOptions& options) {
  int out = 0;
  for (const auto& point : points_of(options)) out = std::max(out, point.longest_sequence());
  return out;
}

double median_seconds(const Row& row) {
  auto sorted = row.seconds;
  std::sort(sorted.begin(), sorted.end());
  return (sorted[sorted.size() / 2] + sorted[(sorted.size() - 1) / 2]) / 2;
}

std::vector<Row> run(std::shared_ptr<const Model> model, const BenchOptions& options, const Progress& progress) {
  Runner runner(std::move(model), options, progress);
  for (const auto& point : points_of(options)) {
    if (runner.stopped()) break;
    runner.measure(point);
  }
  return runner.take();
}

}  // namespace winnow::benchmark
