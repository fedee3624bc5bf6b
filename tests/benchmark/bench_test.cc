// SPDX-License-Identifier: Apache-2.0
#include "benchmark/bench.h"

#include <gtest/gtest.h>

#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/model.h"

namespace winnow::benchmark {
namespace {

/// The fraction of the work that is done before each repetition that counts.
std::vector<double> shares_of(BenchOptions options) {
  const test::TempFolder folder;
  test::write_tiny_gguf({}, folder / "tiny.gguf");
  const auto model = Model::load(folder / "tiny.gguf");
  options.engines = {Engine::winnow};
  options.session.threads = 1;
  options.tokens = test::random_tokens(tokens_of(options), model->info().n_vocab);
  std::vector<double> out;
  Progress progress;
  progress.roofline = {1e9, 0, 1e9};
  progress.on_repetition = [&](const Row&, int, double done) { out.push_back(done); };
  run(model, options, progress);
  return out;
}

TEST(BenchProgress, of_equal_repetitions_is_their_number) {
  BenchOptions options;
  options.prompts = {16};
  options.caches = {CacheOptions(), test::options_of("snapkv:window=4", "8")};
  options.repetitions = 3;
  const auto shares = shares_of(options);
  ASSERT_EQ(shares.size(), 6U);
  for (std::size_t i = 0; i < shares.size(); ++i)  // two earlier ones do not count
    EXPECT_NEAR(shares[i], static_cast<double>(i + 2) / 8, 1e-12);
}

TEST(BenchProgress, weighs_tests_by_their_work) {
  BenchOptions options;
  options.prompts = {8, 64};
  options.generations = {2, 8};
  options.depths = {0, 16};
  options.batches = {1, 3};
  options.caches = {CacheOptions()};
  options.repetitions = 1;
  const auto shares = shares_of(options);
  ASSERT_EQ(shares.size(), 12U);
  for (std::size_t i = 1; i < shares.size(); ++i) EXPECT_LT(shares[i - 1], shares[i]);
  EXPECT_LT(shares.back(), 1);
  // Half of the first two tests is done when the repetition that counts begins.
  EXPECT_GT(shares[1] - 2 * shares[0], 4 * shares[0]) << "64 tokens are eight times as much work as 8, or more";
}

}  // namespace
}  // namespace winnow::benchmark
