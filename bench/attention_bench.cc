// SPDX-License-Identifier: Apache-2.0
// Attention kernels alone, on random data: prefill of a whole layer and one decode step, by model shape and number of
// threads.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "attention/cpu/attention.h"
#include "support/team.h"

namespace winnow::attention {
namespace {

using test::on_team;

constexpr Shape kSmall{9, 3, 64, 0.125F};  // SmolLM2-135M
constexpr int kChunk = 512;

std::vector<float> noise(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& x : out) x = normal(random);
  return out;
}

void fill(cache::LayerScratch& scratch, int n) {
  std::vector<std::int32_t> positions(n);
  scratch.extend(positions);
  const auto width = static_cast<std::size_t>(scratch.kv_heads()) * static_cast<std::size_t>(scratch.head_dim());
  const auto rows = noise(width * 256, 1);
  for (int i = 0; i < n; ++i) {
    const auto row = [&](int r) { return rows.data() + width * static_cast<std::size_t>(r % 256); };
    scratch.store(i, row(i), row(7 * i));
  }
}

/// One layer of a prompt of n tokens, chunk by chunk, with the column statistics `what`, if any.
void prefill(benchmark::State& state, ComputeType compute_type, const std::vector<ColumnRequest>& what) {
  if (!supports(compute_type)) return state.SkipWithError("this machine has no kernel for bf16");
  const int n = static_cast<int>(state.range(0));
  const int threads = static_cast<int>(state.range(1));
  MemoryAccount account;
  cache::LayerScratch scratch(account, ElementType::f16, kSmall.kv_heads, kSmall.head_dim, n);
  fill(scratch, n);
  const auto q = noise(static_cast<std::size_t>(kChunk) * 576, 2);
  std::vector<float> out(q.size());
  cpu::Prefill attention(account, threads, compute_type);
  for (auto _ : state) {
    std::vector<ColumnStatistics> columns;
    for (const auto& o : what) columns.emplace_back(o, kSmall.query_heads, n);
    std::vector<ColumnStatistics*> pointers;
    for (auto& o : columns) pointers.push_back(&o);
    for (int first = 0; first < n; first += kChunk) {
      attention.begin({kSmall, q.data(), out.data(), first, std::min(kChunk, n - first), pointers}, scratch);
      on_team(threads, [&](Worker w) { attention.run(w); });
      on_team(threads, [&](Worker w) { attention.reduce(w); });
    }
  }
  const double flops =
      2.0 * n * n * kSmall.head_dim * kSmall.query_heads;  // half of the square, two products, multiply and add
  state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void layer(benchmark::State& state, ComputeType compute_type) { prefill(state, compute_type, {}); }
void layer_observed_last(benchmark::State& state, ComputeType compute_type) {
  prefill(state, compute_type, {{{QueryRowSet::Kind::last, 32, {}}, Reduction::sum}});
}
void layer_observed_all(benchmark::State& state, ComputeType compute_type) {
  prefill(state, compute_type, {{{QueryRowSet::Kind::all, 0, {}}, Reduction::sum}});
}

/// The lanes of all layers of a model, so that caches and memory are used as in a real step.
struct Lanes {
  static constexpr int kLayers = 30;

  Lanes(MemoryAccount& account, ElementType type, int depth) {
    const std::size_t bytes = cache::row_bytes(type, kSmall.head_dim);
    const std::size_t lane = static_cast<std::size_t>(depth) * bytes;
    memory = Buffer(account, 2UL * kLayers * static_cast<std::size_t>(kSmall.kv_heads) * lane, "lanes");
    const auto row = noise(64, 3);
    for (std::size_t at = 0; at < memory.size(); at += bytes) cache::encode_row(type, row, memory.data() + at);
    const std::byte* at = memory.data();
    for (int i = 0; i < kLayers * kSmall.kv_heads; ++i, at += 2 * lane) {
      reads.push_back({0, i % kSmall.kv_heads, {{at, bytes, depth, 64, type}, {at + lane, bytes, depth, 64, type}, 0}});
    }
  }
  std::span<const DecodeRead> layer(int l) const {
    return std::span(reads).subspan(l * kSmall.kv_heads, static_cast<std::size_t>(kSmall.kv_heads));
  }

  Buffer memory;
  std::vector<DecodeRead> reads;
};

/// One decode step of all layers over `depth` kept entries per head. One team of threads runs all layers, as in ggml's
/// thread pool.
void decode_step(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(1));
  MemoryAccount account;
  const Lanes lanes(account, static_cast<ElementType>(state.range(2)), static_cast<int>(state.range(0)));
  const auto q = noise(576, 4);
  std::vector<float> out(576);
  const Rope rope;
  cpu::Decode attention(account, threads);
  std::atomic<int> arrived{0};
  for (auto _ : state) {
    arrived = 0;
    on_team(threads, [&](Worker w) {
      int waits = 0;
      const auto barrier = [&] {
        ++waits;
        arrived.fetch_add(1);
        while (arrived.load() < waits * threads) std::this_thread::yield();
      };
      for (int layer = 0; layer < Lanes::kLayers; ++layer) {
        if (w.index == 0) attention.begin(kSmall, rope, lanes.layer(layer), q.data(), out.data(), 1);
        barrier();
        attention.run(w);
        barrier();
        attention.merge(w);
        barrier();
      }
    });
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(lanes.memory.size()));
}

void lengths(benchmark::internal::Benchmark* b) {
  b->ArgNames({"n", "threads"})
      ->Args({512, 2})
      ->Args({2048, 2})
      ->Args({8192, 1})
      ->Args({8192, 2})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}
void long_prompt(benchmark::internal::Benchmark* b) {
  b->ArgNames({"n", "threads"})->Args({8192, 1})->Args({8192, 2})->UseRealTime()->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(layer, f32, ComputeType::f32)->Apply(lengths);
BENCHMARK_CAPTURE(layer, bf16, ComputeType::bf16)->Apply(lengths);
BENCHMARK_CAPTURE(layer_observed_last, f32, ComputeType::f32)->Apply(long_prompt);
BENCHMARK_CAPTURE(layer_observed_last, bf16, ComputeType::bf16)->Apply(long_prompt);
BENCHMARK_CAPTURE(layer_observed_all, f32, ComputeType::f32)->Apply(long_prompt);
BENCHMARK_CAPTURE(layer_observed_all, bf16, ComputeType::bf16)->Apply(long_prompt);
BENCHMARK(decode_step)
    ->ArgNames({"depth", "threads", "type"})
    ->ArgsProduct({{512, 8192}, {1, 2}, {0, 1, 2, 3, 4}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace winnow::attention

BENCHMARK_MAIN();
