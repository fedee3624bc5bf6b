// SPDX-License-Identifier: Apache-2.0
// Guarantees of an executor other than correct numbers.
#include "network/executor.h"

#include <ggml.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "network/network.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

class ExecutorTest : public testing::Test {
 protected:
  ExecutorTest() : path_(folder_ / "tiny.gguf") { write_tiny_gguf(TinyModel{}, path_); }
  TempFolder folder_;
  std::string path_;
};

/// Records which threads ran each phase, and whether a phase began before the previous one was over.
class Witness : public network::AttentionOp {
 public:
  explicit Witness(int threads) : threads_(threads) {}
  void phase(int number, const Tensors& tensors, Worker worker) noexcept override {
    if (worker.count != threads_ || (number > 0 && done_[number - 1] != threads_ * (tensors.layer + 1))) broken_ = true;
    if (worker.index == 0) std::fill_n(tensors.out, 4 * 64 * tensors.rows, 0.0F);
    ++done_[number];
  }
  int calls(int number) const { return done_[number]; }
  bool broken() const { return broken_; }

 private:
  int threads_;
  std::atomic<bool> broken_{false};
  std::atomic<int> done_[kPhases] = {};
};

TEST_F(ExecutorTest, every_thread_passes_every_phase_and_waits_for_the_others) {
  constexpr int kThreads = 3;
  MemoryAccount account;
  const auto weights = model::Weights::load(path_);
  network::Executor executor(*weights, kThreads, account);
  Witness witness(kThreads);
  const std::vector<std::int32_t> tokens = {5, 6};
  const std::vector<std::int32_t> positions = {0, 1};
  std::vector<float> logits(tokens.size() * static_cast<std::size_t>(weights->hparams().n_vocab));
  executor.step(network::Rows::of_one_sequence, tokens, positions, witness, logits);
  EXPECT_FALSE(witness.broken());
  for (int phase = 0; phase < network::AttentionOp::kPhases; ++phase)
    EXPECT_EQ(witness.calls(phase), kThreads * weights->hparams().n_layer);
}

/// Keeps the input from which the first layer's queries, keys and values are computed.
class InputWitness : public network::AttentionOp {
 public:
  void phase(int number, const Tensors& tensors, Worker worker) noexcept override {
    if (worker.index == 0) std::fill_n(tensors.out, 4 * 64 * tensors.rows, 0.0F);
    if (number != 0 || tensors.layer != 0 || worker.index != 0) return;
    rows.assign(tensors.input, tensors.input + static_cast<std::ptrdiff_t>(tensors.rows) * tensors.width);
  }
  std::vector<float> rows;
};

/// Attention whose output is its queries, which it keeps.
class QueryWitness : public network::AttentionOp {
 public:
  void phase(int number, const Tensors& tensors, Worker worker) noexcept override {
    if (number != kPhases - 1 || worker.index != 0) return;
    queries.assign(tensors.q, tensors.q + std::ptrdiff_t{4} * 64 * tensors.rows);
    std::copy(queries.begin(), queries.end(), tensors.out);
  }
  std::vector<float> queries;
};

TEST_F(ExecutorTest, rows_that_end_at_attention_stay_as_they_are) {
  for (const char* arch : {"llama", "olmo2", "command-r"}) {
    write_tiny_gguf(tiny_of_heads(arch, 4, 2, 64), path_);
    MemoryAccount account;
    const auto weights = model::Weights::load(path_);
    network::Executor executor(*weights, 2, account);
    int polls = 0;
    executor.set_stop([&polls] { return ++polls < 0; });
    const std::vector<std::int32_t> tokens = {5, 6, 260};
    const std::vector<std::int32_t> positions = {0, 1, 2};
    auto hidden = executor.states(3, "rows");
    executor.embed(tokens, hidden);
    const auto now = [&] {
      std::vector<float> out(3 * static_cast<std::size_t>(weights->hparams().n_embd));
      executor.last_states(hidden, 0, 3, out.data());
      return out;
    };
    const auto embedded = now();
    polls = 0;
    QueryWitness ended;
    executor.run_layer({}, 0, hidden, 0, positions, ended, {.until = network::Until::attention});
    const int polls_to_attention = polls;
    EXPECT_EQ(now(), embedded) << arch;
    polls = 0;
    QueryWitness whole;
    executor.run_layer({}, 0, hidden, 0, positions, whole);
    EXPECT_LT(polls_to_attention, polls) << arch;
    EXPECT_EQ(ended.queries, whole.queries) << arch;
    EXPECT_NE(now(), embedded) << arch;
  }
}

/// Rows of the table of embeddings, [tokens][n_embd].
std::vector<float> embeddings_of(const model::Weights& weights, const std::vector<std::int32_t>& tokens) {
  const auto width = weights.hparams().n_embd;
  const auto* const table = static_cast<const float*>(weights.token_embedding()->data);
  std::vector<float> out;
  for (const auto token : tokens) out.insert(out.end(), table + token * width, table + (token + 1) * width);
  return out;
}

/// Computes it by hand: the embedding divided by its rms, times the norm's weights.
TEST_F(ExecutorTest, attention_sees_the_rows_that_enter_it) {
  MemoryAccount account;
  const auto weights = model::Weights::load(path_);
  const auto& h = weights->hparams();
  network::Executor executor(*weights, 2, account);
  const std::vector<std::int32_t> tokens = {5, 6, 260};
  const std::vector<std::int32_t> positions = {0, 1, 2};
  const auto width = static_cast<std::size_t>(h.n_embd);
  auto hidden = executor.states(3, "three rows");
  executor.embed(tokens, hidden);
  const std::vector<float> embedded = embeddings_of(*weights, tokens);
  InputWitness witness;
  executor.run_layer({}, 0, hidden, 0, positions, witness);
  ASSERT_EQ(witness.rows.size(), embedded.size());
  const auto* const by = static_cast<const float*>(weights->layer(0).attention_norm.weight->data);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    double square = 0;
    for (std::size_t i = 0; i < width; ++i) square += std::pow(embedded[row * width + i], 2);
    const double rms = std::sqrt(square / static_cast<double>(width) + h.norm_eps);
    for (std::size_t i = 0; i < width; ++i)
      EXPECT_NEAR(witness.rows[row * width + i], embedded[row * width + i] / rms * by[i], 1e-5) << row << " " << i;
  }
}

TEST_F(ExecutorTest, results_do_not_depend_on_the_number_of_threads) {
  Network one(path_, 1, 1, 20);
  Network three(path_, 3, 1, 20);
  const auto tokens = random_tokens(20, one.hparams().n_vocab, 1);
  EXPECT_EQ(one.prefill(tokens, 8), three.prefill(tokens, 8));
}

TEST_F(ExecutorTest, layers_change_their_rows_alone) {
  Network network(path_, 1, 1, 4);
  auto hidden = network.executor().states(3, "three rows");
  network.executor().embed(random_tokens(3, network.hparams().n_vocab, 1), hidden);
  const auto row = [&](int i) {
    std::vector<float> out(static_cast<std::size_t>(network.hparams().n_embd));
    network.executor().last_states(hidden, i, 1, out.data());
    return out;
  };
  const std::vector<std::vector<float>> before = {row(0), row(1), row(2)};
  DenseAttention attention(network.hparams(), 1, 4);
  attention.set_rows({{0, 0}});
  const std::vector<std::int32_t> position = {0};
  network.executor().run_layer({}, 0, hidden, 1, position, attention);
  EXPECT_EQ(row(0), before[0]);
  EXPECT_NE(row(1), before[1]);
  EXPECT_EQ(row(2), before[2]);
}

TEST_F(ExecutorTest, batches_of_changing_size_agree_with_single_rows) {
  Network together(path_, 1, 4, 8);
  Network alone(path_, 1, 4, 8);
  const auto vocabulary = static_cast<std::size_t>(together.hparams().n_vocab);
  std::vector<int> length(4, 0);
  for (const std::size_t rows : {4U, 4U, 2U, 3U, 1U, 4U}) {
    const auto tokens = random_tokens(static_cast<int>(rows), together.hparams().n_vocab, static_cast<unsigned>(rows));
    std::vector<DenseAttention::Row> places;
    for (std::size_t i = 0; i < rows; ++i) places.push_back({static_cast<int>(i), length[i]++});
    const auto logits = together.step(tokens, places);
    for (std::size_t i = 0; i < rows; ++i) {
      const auto expected = alone.step(std::span(tokens).subspan(i, 1), {places[i]});
      EXPECT_TRUE(
          std::equal(expected.begin(), expected.end(), logits.begin() + static_cast<std::ptrdiff_t>(i * vocabulary)));
    }
  }
}

TEST_F(ExecutorTest, logits_of_the_last_rows_alone_are_the_same) {
  Network network(path_, 1, 1, 8);
  const auto vocabulary = static_cast<std::size_t>(network.hparams().n_vocab);
  const auto tokens = random_tokens(5, network.hparams().n_vocab, 3);
  const std::vector<DenseAttention::Row> places = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}};
  const auto all = network.step(tokens, places);
  DenseAttention attention(network.hparams(), 1, 8);
  attention.set_rows(places);
  const std::vector<std::int32_t> positions = {0, 1, 2, 3, 4};
  for (const std::size_t wanted : {2U, 0U, 1U}) {
    std::vector<float> logits(wanted * vocabulary);
    network.executor().step(network::Rows::of_several, tokens, positions, attention, logits);
    if (wanted > 0) {
      EXPECT_LT(worst_row(logits, std::span(all).last(logits.size()), network.hparams().n_vocab), 3e-4);
    }
  }
}

TEST_F(ExecutorTest, a_stopped_graph_throws_and_the_next_one_runs) {
  Network network(path_, 2, 1, 20);
  const auto tokens = random_tokens(20, network.hparams().n_vocab, 1);
  const auto expected = network.prefill(tokens, 8);
  network.executor().set_stop([] { return true; });
  EXPECT_THROW(network.prefill(tokens, 8), Interrupted);
  network.executor().set_stop({});
  EXPECT_EQ(network.prefill(tokens, 8), expected);
}

TEST_F(ExecutorTest, memory_that_is_not_there_is_refused_with_the_bytes) {
  TinyModel model;
  model.n_vocab = 100'000;
  write_tiny_gguf(model, path_);
  Network network(path_, 1, 1, 20);
  const auto tokens = random_tokens(20, network.hparams().n_vocab, 1);
  const auto expected = network.prefill(tokens, 8);
  // The logits of 2^21 rows take 839 GB; the call throws before it reads the rows, which nobody has written.
  constexpr int kRows = 1 << 21;
  const auto rows = network.executor().states(kRows, "many rows");
  const auto held = network.account().held();
  try {
    network.executor().logits(rows, 0, kRows, nullptr);
    FAIL() << "839 GB were handed out";
  } catch (const MemoryError& error) {
    EXPECT_GE(error.bytes(), std::size_t{kRows} * static_cast<std::size_t>(network.hparams().n_vocab) * sizeof(float));
    EXPECT_NE(std::string(error.what()).find("2097152 rows"), std::string::npos) << error.what();
  }
  EXPECT_LE(network.account().held(), held);
  EXPECT_EQ(network.prefill(tokens, 8), expected);
}

TEST_F(ExecutorTest, work_space_is_counted_reused_and_given_back) {
  MemoryAccount account;
  const auto weights = model::Weights::load(path_);
  const auto& h = weights->hparams();
  {
    network::Executor executor(*weights, 1, account);
    DenseAttention attention(h, 1, 64);
    std::vector<float> logits(h.n_vocab);
    const auto step = [&](int position) {
      attention.set_rows({{0, position}});
      executor.step(network::Rows::of_one_sequence, std::vector<std::int32_t>{5}, std::vector<std::int32_t>{position},
                    attention, logits);
    };
    step(0);
    const auto held = account.held();
    // At least one row of logits and one row of the widest activation.
    EXPECT_GE(held, static_cast<std::size_t>(h.n_vocab) * sizeof(float));
    for (int i = 1; i < 10; ++i) step(i);
    EXPECT_EQ(account.held(), held);
    EXPECT_EQ(account.peak(), held);
  }
  EXPECT_EQ(account.held(), 0U);
}

}  // namespace
}  // namespace winnow::test
