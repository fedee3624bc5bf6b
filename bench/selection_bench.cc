// SPDX-License-Identifier: Apache-2.0
// Selection beside the prefill before it: one layer of a long prompt from column sums to a plan, and a chunk of
// its attention.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <vector>

#include "attention/cpu/attention.h"
#include "policy/observers/layer_observers.h"
#include "policy/plan.h"
#include "winnow/spec.h"

namespace winnow {
namespace {

constexpr int kTokens = 131072;
constexpr int kChunk = 512;
constexpr int kHeadDim = 64;

attention::Shape shape_of(const benchmark::State& state) {
  const int kv_heads = static_cast<int>(state.range(0));
  return {3 * kv_heads, kv_heads, kHeadDim, 0.125F};
}

std::vector<float> noise(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform;
  std::vector<float> out(n);
  for (float& x : out) x = uniform(random);
  return out;
}

cache::LayerScratch long_prompt(MemoryAccount& account, const attention::Shape& shape) {
  cache::LayerScratch scratch(account, ElementType::f16, shape.kv_heads, shape.head_dim, kTokens);
  const std::vector<std::int32_t> positions(kTokens);
  scratch.extend(positions);
  const auto row = noise(static_cast<std::size_t>(shape.kv_heads * shape.head_dim), 1);
  for (int i = 0; i < kTokens; ++i) scratch.store(i, row.data(), row.data());
  return scratch;
}

/// One layer's plan of ada(snapkv), which pools, ranks over the heads and selects, at range(1) entries per KV head.
void plan(benchmark::State& state) {
  const attention::Shape shape = shape_of(state);
  const int budget = static_cast<int>(state.range(1));
  MemoryAccount account;
  const auto scratch = long_prompt(account, shape);
  const Spec spec = Spec::parse("ada-snapkv");
  const policy::Method& method = spec.method();
  const Rope rope;
  const policy::LayerCalibration none;
  const policy::LayerPrompt prompt{kTokens, shape.group(), shape.head_dim, shape.kv_heads};
  const policy::ObservedLayer site{.prompt = prompt, .shape = shape, .rope = rope, .calibration = none};
  const std::vector<std::vector<policy::ObserverRequestPtr>> of_methods{
      policy::requests_of(method, {.prompt = prompt, .budget = budget, .first_layer = prompt}, policy::Reading::whole)};
  const policy::LayerRequests requests(of_methods);
  const policy::LayerObservers observers(site, requests);
  std::vector<policy::Observer*> looking;
  observers.add_to(looking, kTokens);
  for (int head = 0; head < shape.query_heads; ++head) {
    const auto sums = noise(kTokens, static_cast<unsigned>(head));
    std::copy(sums.begin(), sums.end(), looking.front()->columns().front()->head(head).begin());
  }
  policy::LayerView view{0, 1, 0, shape, scratch, rope, none};
  view.results = observers.results_for(0);
  for (auto _ : state) benchmark::DoNotOptimize(policy::plan(method, view, budget, {budget, {}}));
}

/// Attention of that layer's last chunk, on one thread. The whole layer takes about 128 times as long, and the matrix
/// products take more than that.
void last_chunk(benchmark::State& state) {
  const attention::Shape shape = shape_of(state);
  MemoryAccount account;
  const auto scratch = long_prompt(account, shape);
  const auto q = noise(static_cast<std::size_t>(kChunk * shape.query_heads * shape.head_dim), 2);
  std::vector<float> out(q.size());
  attention::cpu::Prefill attention(account, 1);
  for (auto _ : state) {
    attention.begin({shape, q.data(), out.data(), kTokens - kChunk, kChunk}, scratch);
    attention.run({});
    attention.reduce({});
  }
}

BENCHMARK(plan)->ArgNames({"heads", "budget"})->ArgsProduct({{3, 8}, {512, 13107}})->Unit(benchmark::kMillisecond);
BENCHMARK(last_chunk)->ArgNames({"heads"})->Arg(3)->Arg(8)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace winnow

BENCHMARK_MAIN();
