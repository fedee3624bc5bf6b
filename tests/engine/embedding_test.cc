// SPDX-License-Identifier: Apache-2.0
// Embeddings compared with libllama's for the same file, and embeddings as requests among others.
#include "engine/embedding.h"

#include <gtest/gtest.h>
#include <llama.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "benchmark/llama_cpp.h"
#include "support/random_tokens.h"
#include "support/rounding.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/scheduler.h"

namespace winnow {
namespace {

using engine::EmbeddingSource;
using model::Pooling;
using Texts = std::vector<std::vector<Token>>;
using Vectors = std::vector<std::vector<float>>;

/// The pooled embedding of a text by libllama, of length 1.
std::vector<float> of_libllama(const std::string& path, const std::vector<Token>& text, Pooling pooling) {
  const auto model = benchmark::Llama::load(path);
  auto params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = 2048;  // libllama pools within one graph
  params.n_threads = params.n_threads_batch = 1;
  params.type_k = params.type_v = GGML_TYPE_F32;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
  params.embeddings = true;
  params.pooling_type = pooling == Pooling::mean ? LLAMA_POOLING_TYPE_MEAN : LLAMA_POOLING_TYPE_LAST;
  const std::unique_ptr<llama_context, void (*)(llama_context*)> context(llama_init_from_model(model.get(), params),
                                                                         llama_free);
  auto tokens = text;
  EXPECT_EQ(llama_decode(context.get(), llama_batch_get_one(tokens.data(), static_cast<int>(tokens.size()))), 0);
  const float* const pooled = llama_get_embeddings_seq(context.get(), 0);
  std::vector<float> out(pooled, pooled + llama_model_n_embd(model.get()));
  const double length = std::sqrt(std::inner_product(out.begin(), out.end(), out.begin(), 0.0));
  for (float& value : out) value = static_cast<float>(value / length);
  return out;
}

Request request_for(const Texts& texts, Pooling pooling, Vectors& told) {
  Request out;
  out.keep = EmbeddingSource::keep();
  out.generate.max_tokens = 0;
  out.source = std::make_shared<EmbeddingSource>(
      texts, pooling, [&told](std::vector<float> vector) { told.push_back(std::move(vector)); });
  out.events.on_end = [](const RequestEnd& end) { EXPECT_EQ(end.error, nullptr); };
  return out;
}

Vectors embed(Session& session, const Texts& texts, Pooling pooling) {
  Vectors out;
  Scheduler scheduler(session, {});
  scheduler.add(request_for(texts, pooling, out));
  while (scheduler.advance()) continue;
  return out;
}

/// Compares vectors of length 1, so the length of their difference is the relative error.
void expect_as_libllama(const std::string& path, double tolerance, int chunk) {
  const auto model = Model::load(path);
  Session session(model, {2, Precision::f32, chunk});
  for (const int length : {1, 70, 300}) {
    const auto text = test::random_tokens(length, model->info().n_vocab, 7);
    for (const auto pooling : {Pooling::mean, Pooling::last}) {
      const auto got = embed(session, {text}, pooling).at(0);
      const auto expected = of_libllama(path, text, pooling);
      ASSERT_EQ(got.size(), expected.size());
      double difference = 0;
      for (std::size_t i = 0; i < got.size(); ++i) difference += std::pow(double{got[i]} - expected[i], 2);
      EXPECT_LT(std::sqrt(difference), tolerance) << length << (pooling == Pooling::mean ? ", mean" : ", last");
    }
  }
}

TEST(Embeddings, are_those_of_libllama) {
  const test::TempFolder folder;
  for (const char* arch : {"llama", "qwen2", "qwen3", "gemma3", "phi3", "gpt-oss"}) {
    SCOPED_TRACE(arch);
    auto tiny = test::tiny_of(arch);
    tiny.ctx_train = 4096;
    if (tiny.experts() > 0) tiny.n_expert_used = tiny.experts();  // so rounding cannot change the choice
    write_tiny_gguf(tiny, folder / "tiny.gguf");
    expect_as_libllama(folder / "tiny.gguf", test::tolerance_of(tiny), 64);
  }
}

TEST(Embeddings, of_the_real_model_are_those_of_libllama) {
  const auto path = test::real_model();
  if (!path) GTEST_SKIP() << "WINNOW_TEST_MODEL is not set";
  expect_as_libllama(*path, test::quantized_tolerance(30), 512);
}

class EmbeddingTest : public testing::Test {
 protected:
  EmbeddingTest() {
    test::TinyModel tiny;
    tiny.ctx_train = 4096;
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    session_.emplace(model_, SessionOptions{2, Precision::f32, 32});
  }
  std::vector<Token> tokens(int n, unsigned seed) const { return test::random_tokens(n, model_->info().n_vocab, seed); }

  test::TempFolder folder_;
  std::shared_ptr<const Model> model_;
  std::optional<Session> session_;
};

TEST_F(EmbeddingTest, texts_together_are_those_alone) {
  const Texts texts = {tokens(5, 1), tokens(700, 2), tokens(1, 3), tokens(64, 4)};
  for (const auto pooling : {Pooling::mean, Pooling::last}) {
    const auto together = embed(*session_, texts, pooling);
    ASSERT_EQ(together.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(embed(*session_, {texts[i]}, pooling).at(0), together[i]);
  }
}

TEST_F(EmbeddingTest, no_more_memory_is_used_than_promised_and_none_is_kept) {
  for (const int length : {1, 40, 1000}) {
    Vectors told;
    Scheduler scheduler(*session_, {});
    auto request = request_for({tokens(3, 1), tokens(length, 2), tokens(9, 3)}, Pooling::mean, told);
    const auto promised = scheduler.bytes_of(request);
    scheduler.add(std::move(request));
    const auto before = session_->memory().held;
    session_->reset_peak();
    double last = 0;
    while (scheduler.advance()) {
      const auto states = scheduler.states();
      if (states.empty()) continue;
      EXPECT_GE(states.front().read, last);
      last = states.front().read;
    }
    EXPECT_LE(session_->memory().peak - before, promised + (1 << 20)) << length;
    EXPECT_LE(session_->memory().held, before + (1 << 20)) << length;
    EXPECT_EQ(told.size(), 3U);
  }
}

TEST_F(EmbeddingTest, an_answer_beside_them_is_that_of_its_request_alone) {
  const auto answer = [&](bool beside) {
    std::vector<Token> out;
    Vectors told;
    Scheduler scheduler(*session_, {.max_itl = std::chrono::milliseconds(0)});
    Request asked;
    asked.text().tokens = tokens(50, 1);
    asked.generate.max_tokens = 30;
    asked.generate.end = EndOfSequence::ignored;
    asked.events.on_end = [&](const RequestEnd& end) { out = end.answers.front().tokens; };
    scheduler.add(std::move(asked));
    if (beside) scheduler.add(request_for({tokens(900, 2), tokens(30, 3)}, Pooling::mean, told));
    while (scheduler.advance()) continue;
    if (beside) {
      EXPECT_EQ(told, embed(*session_, {tokens(900, 2), tokens(30, 3)}, Pooling::mean));
    }
    return out;
  };
  EXPECT_EQ(answer(true), answer(false));
}

TEST_F(EmbeddingTest, one_that_is_cancelled_leaves_nothing) {
  const auto before = session_->memory().held;
  Vectors told;
  Scheduler scheduler(*session_, {});
  const auto id = scheduler.add(request_for({tokens(900, 2), tokens(900, 3)}, Pooling::mean, told));
  for (int i = 0; i < 9; ++i) scheduler.advance();
  scheduler.cancel(id);
  while (scheduler.advance()) continue;
  EXPECT_LE(session_->memory().held, before + (1 << 20));
}

/// Compares a mean and a last row with values computed by hand.
TEST(PooledRows, are_of_length_1) {
  engine::PooledRows mean(Pooling::mean, 2);
  mean.add(std::vector<float>{1, 0, 0, 3});
  mean.add(std::vector<float>{2, 1});
  EXPECT_EQ(mean.take(), (std::vector<float>{0.6F, 0.8F}));
  EXPECT_EQ(mean.take(), (std::vector<float>{0, 0})) << "it is empty again";
  engine::PooledRows last(Pooling::last, 2);
  last.add(std::vector<float>{1, 0, 0, 3});
  last.add(std::vector<float>{-3, 4});
  EXPECT_EQ(last.take(), (std::vector<float>{-0.6F, 0.8F}));
}

}  // namespace
}  // namespace winnow
