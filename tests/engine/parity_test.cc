// SPDX-License-Identifier: Apache-2.0
// Sessions, from tokens to logits, compared with libllama on the same file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "benchmark/llama_cpp.h"
#include "support/random_tokens.h"
#include "support/rounding.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/session.h"

namespace winnow {
namespace {

using test::TinyModel;

constexpr int kContext = 4096;  // of libllama

/// Relative error in the L2 norm.
double error_of(std::span<const float> got, std::span<const float> expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - expected[i], 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / norm);
}

/// Compares prefill in chunks and decode, alone and in a batch of different lengths.
void expect_parity(const std::string& path, double tolerance, int tokens, const std::vector<int>& chunks) {
  const auto model = Model::load(path);
  CacheOptions cache;
  cache.kv_type = KvType::parse("f32");
  const auto ids = test::random_tokens(tokens + 8, model->info().n_vocab, 7);
  benchmark::LlamaOptions options;
  options.context = kContext;
  options.kv_type = ElementType::f32;
  options.threads = 1;  // two pools of spinning threads would slow each other
  benchmark::Llama llama(path, options);

  const auto prompt = std::span(ids).first(tokens);
  const auto expected = llama.decode(prompt);
  std::vector<std::vector<float>> expected_steps;
  for (std::size_t i = prompt.size(); i < ids.size(); ++i)
    expected_steps.push_back(llama.decode(std::span(ids).subspan(i, 1)));

  for (const int chunk : chunks) {
    SCOPED_TRACE("chunk " + std::to_string(chunk));
    Session session(model, {2, Precision::f32, chunk});
    auto prefilled = session.prefill(prompt, std::span(&cache, 1));
    EXPECT_LT(error_of(prefilled.logits, expected), tolerance);
    if (chunk != chunks.back()) continue;
    std::vector<float> logits(expected.size());
    for (std::size_t i = 0; i < expected_steps.size(); ++i) {
      Cache* const one = &prefilled.caches.front();
      session.step(std::span(&one, 1), std::span(ids).subspan(prompt.size() + i, 1), logits);
      EXPECT_LT(error_of(logits, expected_steps[i]), tolerance) << "step " << i;
    }
  }
}

void expect_batch_parity(const std::string& path, double tolerance) {
  const auto model = Model::load(path);
  const auto vocabulary = static_cast<std::size_t>(model->info().n_vocab);
  CacheOptions options;
  options.kv_type = KvType::parse("f32");
  Session session(model, {2, Precision::f32, 512});
  benchmark::LlamaOptions llama_options;
  llama_options.context = kContext;
  llama_options.kv_type = ElementType::f32;
  llama_options.threads = 1;
  benchmark::Llama llama(path, llama_options);
  std::vector<Cache> caches;
  std::vector<Token> next;
  std::vector<std::vector<float>> expected;
  for (unsigned i = 0; i < 5; ++i) {
    const auto ids = test::random_tokens(5 + 17 * static_cast<int>(i), model->info().n_vocab, 100 + i);
    const auto prompt = std::span(ids).first(ids.size() - 1);
    caches.push_back(std::move(session.prefill(prompt, std::span(&options, 1)).caches.front()));
    next.push_back(ids.back());
    llama.clear();
    expected.push_back(llama.decode(ids));
  }
  std::vector<Cache*> pointers;
  for (auto& cache : caches) pointers.push_back(&cache);
  std::vector<float> logits(5 * vocabulary);
  session.step(pointers, next, logits);
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_LT(error_of(std::span(logits).subspan(i * vocabulary, vocabulary), expected[i]), tolerance) << i;
}

struct Case {
  std::string name;
  TinyModel model;
  double tolerance;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

/// Each token uses all experts, each with its own weight, so rounding cannot change the choice.
Case case_of(const std::string& name, const TinyModel& model) {
  Case out{name, model, test::tolerance_of(model)};
  if (model.experts() > 0) out.model.n_expert_used = model.experts();
  std::replace(out.name.begin(), out.name.end(), '-', '_');
  return out;
}

Case shape(const std::string& name, const std::string& arch, int heads, int kv_heads, int head_dim) {
  return case_of(name, test::tiny_of_heads(arch, heads, kv_heads, head_dim));
}

Case weights_of(ggml_type type) {
  TinyModel m;
  m.n_embd = 256;
  m.n_ff = 256;
  m.type = type;
  return {ggml_type_name(type), m, test::quantized_tolerance(2)};
}

/// Phi-3's RoPE factors: those for long texts if the original context is shorter than the file's.
Case longrope(const std::string& name, int original_context) {
  TinyModel m = test::tiny_of("phi3");
  m.ctx_train = kContext;
  m.longrope = true;
  m.scaling.original_context = original_context;
  m.scaling.attn_factor = 1.19F;
  return case_of(name, m);
}

Case yarn(const std::string& name, const std::string& arch) {
  TinyModel m = test::tiny_of(arch);
  m.scaling = {"yarn", 4, 64};
  return case_of(name, m);
}

// tests/network covers weight types, tied weights, optional tensors and kinds of RoPE; the engine does not depend on
// them.
std::vector<Case> all_cases() {
  std::vector<Case> out = {shape("llama_mha", "llama", 3, 3, 80),
                           shape("llama_gqa7", "llama", 7, 1, 96),
                           shape("llama_gqa3", "llama", 9, 3, 128),
                           shape("qwen2_gqa7", "qwen2", 7, 1, 64),
                           shape("qwen3_128", "qwen3", 8, 2, 128),
                           shape("gemma_256", "gemma", 4, 1, 256),
                           shape("gemma4_512", "gemma4", 4, 1, 512),
                           weights_of(GGML_TYPE_Q8_0),
                           weights_of(GGML_TYPE_Q4_1),
                           yarn("llama_yarn", "llama"),
                           yarn("qwen3_yarn", "qwen3"),
                           longrope("phi3_short_factors", kContext),
                           longrope("phi3_long_factors", kContext / 2)};
  TinyModel shared = test::tiny_of("gemma4");
  shared.shared_kv = 3;
  shared.layer_embedding = 16;
  out.push_back(case_of("gemma4_shared_keys", shared));
  TinyModel experts = test::tiny_of("gemma4");
  experts.n_expert = 8;
  experts.n_expert_used = 8;
  experts.router_scale = 32;
  out.push_back(case_of("gemma4_experts", experts));
  for (const auto& row : test::tiny_architectures()) {
    const std::string arch(row.name);
    out.push_back(case_of(arch, test::tiny_of(arch)));
  }
  return out;
}

class Parity : public testing::TestWithParam<Case> {
 protected:
  Parity() : path_(folder_ / "tiny.gguf") { write_tiny_gguf(GetParam().model, path_); }
  test::TempFolder folder_;
  std::string path_;
};

TEST_P(Parity, prefill_and_decode) { expect_parity(path_, GetParam().tolerance, 70, {1, 7, 512, 70}); }
TEST_P(Parity, batch_of_five) { expect_batch_parity(path_, GetParam().tolerance); }

INSTANTIATE_TEST_SUITE_P(all, Parity, testing::ValuesIn(all_cases()),
                         [](const auto& instance) { return instance.param.name; });

TEST(ParityOfTheRealModel, prefill_and_decode) {
  const auto path = test::real_model();
  if (!path) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
  expect_parity(*path, test::quantized_tolerance(30), 200, {7, 512, 200});
  expect_batch_parity(*path, test::quantized_tolerance(30));
}

}  // namespace
}  // namespace winnow
