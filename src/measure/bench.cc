#include "measure/bench.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "winnow/error.h"

namespace winnow::measure {

namespace {

constexpr Engine kEngines[] = {Engine::winnow, Engine::llama_cpp, Engine::llama_cpp_fa};

/// Tests that begin behind the same sequences.
struct Point {
  int depth = 0;
  int batch = 1;
  std::vector<int> prompts;
  std::vector<int> generations;

  /// Nothing can be decoded behind nothing.
  int tokens_before() const { return generations.empty() ? depth : std::max(1, depth); }
  int longest_sequence() const {
    int out = 0;
    for (const int n : prompts) out = std::max(out, n);
    for (const int n : generations) out = std::max(out, n);
    return tokens_before() + out;
  }
};

std::vector<Point> points_of(const Plan& plan) {
  std::vector<Point> out;
  for (const int depth : plan.depths) {
    if (!plan.prompts.empty()) out.push_back({depth, 1, plan.prompts, {}});
    if (plan.generations.empty()) continue;
    for (const int batch : plan.batches) out.push_back({depth, batch, {}, plan.generations});
  }
  return out;
}

struct Side {
  Engine engine;
  CacheOptions cache;
  std::unique_ptr<Contender> contender;
};

class Runner {
 public:
  Runner(std::shared_ptr<const Model> model, const Plan& plan, const Progress& progress)
      : model_(std::move(model)), plan_(plan), progress_(progress) {}

  void measure(const Point& point) {
    auto sides = sides_of(point);
    const auto before = std::span<const Token>(plan_.tokens).first(static_cast<std::size_t>(point.tokens_before()));
    for (auto& side : sides) side.contender->start(before, point.batch);
    Row test;
    test.depth = point.depth;
    test.batch = point.batch;
    for (const int n : point.prompts) {
      test.prompt = n;
      measure(sides, test);
    }
    for (const int n : point.generations) {
      test.generation = n;
      measure(sides, test);
    }
  }

  std::vector<Row> take() { return std::move(rows_); }
  bool stopped() const { return progress_.stop && progress_.stop(); }

 private:
  /// winnow with each cache, and its peers.
  std::vector<Side> sides_of(const Point& point) {
    std::vector<Side> out;
    for (const Engine engine : plan_.engines) {
      if (engine == Engine::winnow) {
        for (const auto& cache : plan_.caches)
          out.push_back({engine, cache, winnow_contender(model_, plan_.session, cache)});
      } else {
        out.push_back({engine, {}, peer_of(engine, point)});
      }
    }
    return out;
  }

  std::unique_ptr<Contender> peer_of(Engine engine, const Point& point) {
    if (peer_weights_ == nullptr) peer_weights_ = peer::Llama::load(model_->info().path);
    peer::LlamaOptions options;
    options.context = point.longest_sequence() * point.batch;
    options.sequences = point.batch;
    options.sharing = peer::Sharing::buffer_for_each;
    options.threads = plan_.session.threads;
    options.flash_attention = engine == Engine::llama_cpp_fa ? peer::FlashAttention::on : peer::FlashAttention::off;
    return llama_contender(peer_weights_, options, token_bytes());
  }

  std::size_t token_bytes() const {
    constexpr std::size_t kKeyAndValueF16 = 4;
    const auto& info = model_->info();
    return static_cast<std::size_t>(info.n_layer) * static_cast<std::size_t>(info.n_head_kv * info.head_dim) *
           kKeyAndValueF16;
  }

  void measure(std::vector<Side>& sides, const Row& test) {
    std::vector<Row> rows;
    for (const auto& side : sides) {
      rows.push_back(test);
      rows.back().engine = side.engine;
      rows.back().cache = side.cache;
    }
    for (int repetition = 0; repetition <= plan_.repetitions && !stopped(); ++repetition) {
      for (std::size_t i = 0; i < sides.size() && !stopped(); ++i) repeat(*sides[i].contender, repetition, rows[i]);
    }
    for (auto& row : rows) {
      if (!row.seconds.empty()) rows_.push_back(std::move(row));
    }
  }

  void repeat(Contender& contender, int repetition, Row& row) {
    if (progress_.on_repetition && repetition > 0) progress_.on_repetition(row, repetition);
    contender.restore();
    // The pools of the others go on polling for a while after their last graph.
    if (plan_.session.threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    const auto begin = Clock::now();
    work(contender, row);
    const auto seconds = ms_since(begin) / 1000;
    if (repetition > 0) row.seconds.push_back(seconds);  // the first round touches pages and wakes the clocks
    row.bytes = contender.bytes();
    row.work = row.prompt > 0
                   ? work_of_reading(*model_, row.prompt, row.depth)
                   : work_of_decoding(*model_, row.generation, row.batch, static_cast<double>(row.bytes.read));
  }

  void work(Contender& contender, const Row& row) const {
    const auto behind = std::span<const Token>(plan_.tokens).subspan(static_cast<std::size_t>(row.depth));
    if (row.prompt > 0) contender.read(behind.first(static_cast<std::size_t>(row.prompt)));
    for (int i = 0; i < row.generation; ++i)
      contender.step(std::vector<Token>(static_cast<std::size_t>(row.batch), behind[static_cast<std::size_t>(i)]));
  }

  std::shared_ptr<const Model> model_;
  const Plan& plan_;
  const Progress& progress_;
  std::shared_ptr<llama_model> peer_weights_;
  std::vector<Row> rows_;
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

int tokens_of(const Plan& plan) {
  int out = 0;
  for (const auto& point : points_of(plan)) out = std::max(out, point.longest_sequence());
  return out;
}

double median_seconds(const Row& row) {
  auto sorted = row.seconds;
  std::sort(sorted.begin(), sorted.end());
  return (sorted[sorted.size() / 2] + sorted[(sorted.size() - 1) / 2]) / 2;
}

std::vector<Row> run(std::shared_ptr<const Model> model, const Plan& plan, const Progress& progress) {
  Runner runner(std::move(model), plan, progress);
  for (const auto& point : points_of(plan)) {
    if (runner.stopped()) break;
    runner.measure(point);
  }
  return runner.take();
}

}  // namespace winnow::measure
