// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "benchmark/llama_cpp.h"
#include "network/network.h"
#include "support/rounding.h"

/// Compares the network without winnow's attention with llama.cpp, through libllama, on the same file.
namespace winnow::test {

inline constexpr int kPrompt = 30;
inline constexpr int kBatch = 5;
inline constexpr int kContext = 1024;   // of libllama
inline constexpr unsigned kRounds = 3;  ///< of steps

inline benchmark::LlamaOptions exact(int context) {
  benchmark::LlamaOptions options;
  options.context = context;
  options.sequences = kBatch;
  options.threads = 1;
  options.kv_type = ElementType::f32;
  return options;
}

/// The texts that expect_parity() reads: a prompt, and the tokens of each sequence of a batch after all steps. Other
/// tests check properties of these texts first.
inline std::vector<std::vector<std::int32_t>> tokens_of_parity(int prompt, int vocabulary) {
  std::vector<std::vector<std::int32_t>> out = {random_tokens(prompt, vocabulary, 7)};
  for (int i = 0; i < kBatch; ++i) {
    out.push_back(random_tokens(1 + 3 * i, vocabulary, 20 + static_cast<unsigned>(i)));
    for (unsigned round = 0; round < kRounds; ++round)
      out.back().push_back(random_tokens(kBatch, vocabulary, 40 + round)[static_cast<std::size_t>(i)]);
  }
  return out;
}

/// Checks the worst row of a prompt read in the given chunks, and of rounds of steps by five sequences of different
/// lengths.
inline void expect_parity(const std::string& path, double tolerance, double gain, int prompt,
                          const std::vector<int>& chunks, std::shared_ptr<device::Device> device = {}) {
  benchmark::Llama llama(path, exact(kContext));
  Network network(path, 1, kBatch, prompt + 4 * kBatch, DenseAttention::grouped, network::Packing::none,
                  std::move(device));
  const int vocabulary = network.hparams().n_vocab;
  const auto tokens = random_tokens(prompt, vocabulary, 7);
  const auto expected = llama.decode_all(tokens);
  for (const int chunk : chunks) {
    const double error = worst_row(network.prefill(tokens, chunk), expected, vocabulary);
    EXPECT_LT(error, tolerance) << "chunk " << chunk;
    testing::Test::RecordProperty("chunk_" + std::to_string(chunk), std::to_string(error));
  }
  EXPECT_LT(network.gain(), gain) << "the tolerance assumes less";

  llama.clear();
  std::vector<DenseAttention::Row> rows(kBatch);
  for (int i = 0; i < kBatch; ++i) {
    rows[i] = {i, 1 + 3 * i};
    const auto own = random_tokens(1 + 3 * i, vocabulary, 20 + static_cast<unsigned>(i));
    std::vector<DenseAttention::Row> prompt_rows;
    for (int p = 0; p < static_cast<int>(own.size()); ++p) prompt_rows.push_back({i, p});
    EXPECT_LT(worst_row(network.step(own, prompt_rows), llama.decode_all(own, i), vocabulary), tolerance)
        << "prompt of sequence " << i;
  }
  for (unsigned round = 0; round < kRounds; ++round) {
    const auto next = random_tokens(kBatch, vocabulary, 40 + round);
    EXPECT_LT(worst_row(network.step(next, rows), llama.step(next), vocabulary), tolerance) << "step " << round;
    for (auto& row : rows) ++row.position;
  }
}

}  // namespace winnow::test
