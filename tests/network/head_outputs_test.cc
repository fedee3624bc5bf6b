// SPDX-License-Identifier: Apache-2.0
// Values times each query head's part of an output projection, compared with double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "network/network.h"
#include "support/output_projection.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow::test {
namespace {

using network::Packing;

std::size_t z(int i) { return static_cast<std::size_t>(i); }

/// Random values of a layer, [H_kv][tokens][d]; all tokens' lengths differ clearly.
std::vector<float> random_values(const model::LayerSpec& spec, int tokens) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> out(z(spec.n_head_kv) * z(tokens) * z(spec.head_dim));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = normal(random) * (1 + static_cast<float>(i / z(spec.head_dim) % z(tokens)));
  return out;
}

void expect_lengths(const TinyModel& tiny, Packing packing, double tolerance) {
  constexpr int kTokens = 300;
  const TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  write_tiny_gguf(tiny, path);
  Network network(path, 2, 1, 1, DenseAttention::grouped, packing);
  for (int layer = 0; layer < network.hparams().n_layer; ++layer) {
    const auto& spec = network.hparams().layer(layer);
    const auto values = random_values(spec, kTokens);
    std::vector<float> absolute(z(spec.n_head) * kTokens);
    std::vector<float> euclidean(absolute.size());
    const auto source = [&](int head, int first, int count, float* to) {
      const auto from = values.begin() + (head * kTokens + first) * spec.head_dim;
      std::copy(from, from + count * spec.head_dim, to);
    };
    network.executor().output_lengths(layer, kTokens, source, {absolute, euclidean});
    const auto w = output_projection(path, layer);
    const int outputs = network.hparams().n_embd;
    for (int h = 0; h < spec.n_head; ++h) {
      for (int t = 0; t < kTokens; ++t) {
        double sum = 0;
        double squares = 0;
        for (int o = 0; o < outputs; ++o) {
          double made = 0;
          for (int c = 0; c < spec.head_dim; ++c)
            made += w[z((o * spec.n_head + h) * spec.head_dim + c)] *
                    values[z((h / spec.group() * kTokens + t) * spec.head_dim + c)];
          sum += std::abs(made);
          squares += made * made;
        }
        ASSERT_NEAR(absolute[z(h * kTokens + t)] / sum, 1, tolerance) << layer << " " << h << " " << t;
        ASSERT_NEAR(euclidean[z(h * kTokens + t)] / std::sqrt(squares), 1, tolerance) << layer << " " << h << " " << t;
      }
    }
  }
}

TEST(OutputLengths, are_those_of_each_heads_part_whatever_the_weights_type) {
  TinyModel tiny;
  tiny.n_embd = 256;
  tiny.n_ff = 256;
  for (const auto type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_1, GGML_TYPE_Q8_0, GGML_TYPE_Q4_K}) {
    SCOPED_TRACE(ggml_type_name(type));
    tiny.type = type;
    expect_lengths(tiny, Packing::none, 1e-5);
    expect_lengths(tiny, Packing::layer, 0.01);
  }
}

TEST(OutputLengths, of_heads_that_are_no_whole_blocks) {
  for (const auto& tiny : {tiny_of_heads("llama", 7, 1, 48), tiny_of_different_layers()}) {
    expect_lengths(tiny, Packing::none, 1e-5);
    expect_lengths(tiny, Packing::layer, 0.01);
  }
}

/// Peak memory equals the estimate but for the threads' rows and the graph's bookkeeping.
TEST(OutputLengths, take_the_memory_that_was_foretold) {
  const TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  TinyModel tiny;
  tiny.n_embd = 512;
  tiny.n_head = 16;
  write_tiny_gguf(tiny, path);
  for (const auto packing : {Packing::none, Packing::layer}) {
    Network network(path, 2, 1, 1, DenseAttention::grouped, packing);
    const auto before = network.account().held();
    std::vector<float> absolute(16 * 600);
    std::vector<float> euclidean(16 * 600);
    const auto ones = [](int, int, int count, float* to) { std::fill_n(to, count * 64, 1.0F); };
    network.executor().output_lengths(0, 600, ones, {absolute, euclidean});
    EXPECT_LT(network.account().peak() - before,
              network::Executor::output_lengths_bytes(network.hparams()) + (1U << 20));
  }
}

}  // namespace
}  // namespace winnow::test
