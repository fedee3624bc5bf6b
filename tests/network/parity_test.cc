// SPDX-License-Identifier: Apache-2.0
// The network without winnow's attention, logits of every token, against llama.cpp through libllama on the same file.
#include <gtest/gtest.h>

#include "benchmark/llama_cpp.h"
#include "network/network.h"
#include "support/rounding.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow::test {
namespace {

struct Case {
  std::string name;
  TinyModel model;
  double tolerance = 0;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Case shape(const char* arch, int heads, int kv_heads, int head_dim) {
  return {
      std::string(arch) + "_" + std::to_string(heads) + "_" + std::to_string(kv_heads) + "_" + std::to_string(head_dim),
      tiny_of_heads(arch, heads, kv_heads, head_dim), tolerance_of(arch)};
}

Case weights_of(ggml_type type, double tolerance) {
  TinyModel m;
  m.n_embd = 256;
  m.n_ff = 256;
  m.type = type;
  return {ggml_type_name(type), m, tolerance};
}

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const char* arch : {"llama", "qwen2", "qwen3", "gemma"}) {
    out.push_back(shape(arch, 3, 3, 64));
    out.push_back(shape(arch, 7, 1, 64));
    out.push_back(shape(arch, 6, 2, 80));
    out.push_back(shape(arch, 6, 2, 96));
    out.push_back(shape(arch, 6, 2, 128));
    out.push_back(shape(arch, 4, 1, 256));
    if (std::string(arch) == "gemma") continue;  // always tied
    out.push_back(shape(arch, 6, 2, 64));
    out.back().name += "_untied";
    out.back().model.tied = false;
  }
  out.push_back(shape("llama", 6, 2, 64));
  out.back().name = "llama_rope_factors";
  out.back().model.rope_factors = true;
  out.push_back(shape("llama", 6, 2, 64));
  out.back().name = "llama_linear_scaling";
  out.back().model.scaling = {"linear", 4};
  out.push_back(weights_of(GGML_TYPE_F16, half_tolerance(10, 2)));
  out.push_back(weights_of(GGML_TYPE_BF16, half_tolerance(7, 2)));
  for (const auto type :
       {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_Q2_K, GGML_TYPE_Q3_K,
        GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_NL, GGML_TYPE_IQ4_XS, GGML_TYPE_IQ3_S}) {
    out.push_back(weights_of(type, quantized_tolerance(2)));
  }
  return out;
}

constexpr int kPrompt = 30;
constexpr int kBatch = 5;

benchmark::LlamaOptions exact(int context) {
  benchmark::LlamaOptions options;
  options.context = context;
  options.sequences = kBatch;
  options.threads = 1;
  options.kv_type = ElementType::f32;
  return options;
}

/// The worst row of a prompt, in the given chunks, and its rounds of steps by five sequences of different lengths.
void expect_parity(const std::string& path, double tolerance, int prompt, const std::vector<int>& chunks) {
  benchmark::Llama llama(path, exact(1024));
  Network network(path, 1, kBatch, prompt + 4 * kBatch);
  const int vocabulary = network.hparams().n_vocab;
  const auto tokens = random_tokens(prompt, vocabulary, 7);
  const auto expected = llama.decode_all(tokens);
  for (const int chunk : chunks) {
    const double error = worst_row(network.prefill(tokens, chunk), expected, vocabulary);
    EXPECT_LT(error, tolerance) << "chunk " << chunk;
    testing::Test::RecordProperty("chunk_" + std::to_string(chunk), std::to_string(error));
  }
  EXPECT_LT(network.gain(), kLargestGain) << "the tolerance assumes less";

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
  for (unsigned round = 0; round < 3; ++round) {
    const auto next = random_tokens(kBatch, vocabulary, 40 + round);
    EXPECT_LT(worst_row(network.step(next, rows), llama.step(next), vocabulary), tolerance) << "step " << round;
    for (auto& row : rows) ++row.position;
  }
}

class GraphParity : public testing::TestWithParam<Case> {
 protected:
  GraphParity() : path_(folder_ / "tiny.gguf") { write_tiny_gguf(GetParam().model, path_); }
  TempFolder folder_;
  std::string path_;
};

TEST_P(GraphParity, every_token_and_a_batch_of_five) {
  expect_parity(path_, GetParam().tolerance, kPrompt, {1, 7, 512, kPrompt});
}

INSTANTIATE_TEST_SUITE_P(all, GraphParity, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return test.param.name; });

double error_of(const std::string& path, int rope_sign, DenseAttention::Mapping mapping) {
  benchmark::Llama llama(path, exact(256));
  Network network(path, 1, 1, kPrompt, mapping);
  network.set_rope_sign(rope_sign);
  const auto tokens = random_tokens(kPrompt, network.hparams().n_vocab, 7);
  return worst_row(network.prefill(tokens, kPrompt), llama.decode_all(tokens), network.hparams().n_vocab);
}

/// A tolerance means something only if a broken network is outside it.
void expect_breaking_is_noticed(const std::string& path, double tolerance) {
  EXPECT_LT(error_of(path, 1, DenseAttention::grouped), tolerance);
  EXPECT_GT(error_of(path, -1, DenseAttention::grouped), tolerance) << "rotated the wrong way";
  EXPECT_GT(error_of(path, 1, DenseAttention::interleaved), tolerance) << "query heads that read the wrong KV heads";
}

class BrokenNetwork : public testing::TestWithParam<const char*> {};

TEST_P(BrokenNetwork, is_noticed) {
  TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  write_tiny_gguf(shape(GetParam(), 6, 2, 64).model, path);
  expect_breaking_is_noticed(path, quantized_tolerance(2));  // the widest of the tiny networks' tolerances
}

INSTANTIATE_TEST_SUITE_P(all, BrokenNetwork, testing::Values("llama", "qwen2", "qwen3", "gemma"),
                         [](const auto& test) { return std::string(test.param); });

TEST(GraphParityOfTheRealModel, every_token_and_a_batch_of_five) {
  const auto path = real_model();
  if (!path) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
  expect_parity(*path, quantized_tolerance(30), kPrompt, {7, kPrompt});
  expect_breaking_is_noticed(*path, quantized_tolerance(30));
}

}  // namespace
}  // namespace winnow::test
