// SPDX-License-Identifier: Apache-2.0
// Encoding and decoding of keys and values, row by row, as when lanes are filled and when attention reads types that it
// must decode first.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "cache/element.h"

namespace winnow::cache {
namespace {

constexpr int kDim = 64;
constexpr int kRows = 512;

struct Memory {
  explicit Memory(ElementType type)
      : bytes(row_bytes(type, kDim)),
        rows(static_cast<std::size_t>(kRows) * kDim),
        encoded(static_cast<std::size_t>(kRows) * bytes) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& x : rows) x = normal(random);
    encode(type);
  }
  void encode(ElementType type) {
    for (std::size_t i = 0; i < kRows; ++i)
      encode_row(type, std::span(rows).subspan(i * kDim, kDim), encoded.data() + i * bytes);
  }
  void decode(ElementType type) {
    for (std::size_t i = 0; i < kRows; ++i)
      decode_row(type, encoded.data() + i * bytes, std::span(rows).subspan(i * kDim, kDim));
  }

  std::size_t bytes;
  std::vector<float> rows;
  std::vector<std::byte> encoded;
};

template <class Work>
void time_rows(benchmark::State& state, const Work& work) {
  for (auto _ : state) {
    work();
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kRows * kDim * static_cast<std::int64_t>(sizeof(float)));
}

void encode(benchmark::State& state, ElementType type) {
  Memory memory(type);
  time_rows(state, [&] { memory.encode(type); });
}

void decode(benchmark::State& state, ElementType type) {
  Memory memory(type);
  time_rows(state, [&] { memory.decode(type); });
}

BENCHMARK_CAPTURE(encode, f16, ElementType::f16);
BENCHMARK_CAPTURE(encode, bf16, ElementType::bf16);
BENCHMARK_CAPTURE(encode, q8_0, ElementType::q8_0);
BENCHMARK_CAPTURE(encode, q4_0, ElementType::q4_0);
BENCHMARK_CAPTURE(decode, f16, ElementType::f16);
BENCHMARK_CAPTURE(decode, bf16, ElementType::bf16);
BENCHMARK_CAPTURE(decode, q8_0, ElementType::q8_0);
BENCHMARK_CAPTURE(decode, q4_0, ElementType::q4_0);

}  // namespace
}  // namespace winnow::cache

BENCHMARK_MAIN();
