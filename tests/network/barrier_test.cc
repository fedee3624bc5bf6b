// SPDX-License-Identifier: Apache-2.0
// Threads that wait for each other: no wake-up is lost while they sleep, and waiting takes no processor time.
#include <ggml.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <future>
#include <string_view>
#include <thread>

#include "network/network.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow::test {
namespace {

/// A ggml installed on the system spins at its barriers; the one built by tools/get-deps.sh sleeps.
bool barriers_sleep() { return std::string_view(ggml_commit()).ends_with("-winnow"); }

class BarrierTest : public testing::Test {
 protected:
  BarrierTest() : path_(folder_ / "tiny.gguf") { write_tiny_gguf(TinyModel{}, path_); }

  /// Reads a prompt, then decodes single tokens: many short graphs. Returns all logits.
  std::vector<float> read_and_decode(int threads, int steps) {
    Network network(path_, threads, 1, kPrompt + steps);
    const auto tokens = random_tokens(kPrompt + steps, network.hparams().n_vocab, 1);
    auto out = network.prefill(std::span(tokens).first(kPrompt), kChunk);
    for (int i = kPrompt; i < kPrompt + steps; ++i) {
      const auto logits = network.step(std::span(tokens).subspan(i, 1), {{0, i}});
      out.insert(out.end(), logits.begin(), logits.end());
    }
    return out;
  }

  static constexpr int kPrompt = 20;
  static constexpr int kChunk = 3;
  TempFolder folder_;
  std::string path_;
};

TEST_F(BarrierTest, any_number_of_threads_computes_the_same_bits) {
  const auto expected = read_and_decode(1, 10);
  for (const int threads : {2, 3, 4, 7}) EXPECT_EQ(read_and_decode(threads, 10), expected) << threads << " threads";
}

/// A lost wake-up makes this test exceed its time limit; so does a barrier whose threads spin while the thread that
/// they wait for needs their core.
TEST_F(BarrierTest, teams_larger_than_the_machine_get_through_many_short_graphs) {
  if (!barriers_sleep()) GTEST_SKIP() << "this ggml spins at its barriers";
  constexpr int kTeams = 3;
  constexpr int kSteps = 300;
  const int threads = 2 * static_cast<int>(std::max(2U, std::thread::hardware_concurrency()));
  const auto expected = read_and_decode(1, kSteps);
  std::vector<std::future<std::vector<float>>> teams;
  for (int i = 0; i < kTeams; ++i)
    teams.push_back(std::async(std::launch::async, [&, i] { return read_and_decode(threads - i, kSteps); }));
  for (auto& team : teams) EXPECT_EQ(team.get(), expected);
}

/// Its first thread sleeps once while the others have nothing to do.
class Resting : public network::AttentionOp {
 public:
  static constexpr std::chrono::milliseconds kRest{400};

  void phase(int number, const Tensors& tensors, Worker worker) noexcept override {
    if (worker.index != 0) return;
    if (number == 0) std::fill_n(tensors.out, 4 * 64 * tensors.rows, 0.0F);
    if (number == 1 && tensors.layer == 0) std::this_thread::sleep_for(kRest);
  }
};

TEST_F(BarrierTest, waiting_for_a_thread_takes_no_processor_time) {
  if (!barriers_sleep()) GTEST_SKIP() << "this ggml spins at its barriers";
  MemoryAccount account;
  const auto weights = model::Weights::load(path_);
  network::Executor executor(*weights, 2, account);
  Resting attention;
  std::vector<float> logits(weights->hparams().n_vocab);
  const std::vector<std::int32_t> token = {5};
  const std::vector<std::int32_t> position = {0};
  const std::clock_t before = std::clock();  // processor time of all threads
  executor.step(network::Rows::of_one_sequence, token, position, attention, logits);
  const double taken = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(taken, std::chrono::duration<double>(Resting::kRest).count() / 4);
}

}  // namespace
}  // namespace winnow::test
