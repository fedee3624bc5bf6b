// SPDX-License-Identifier: Apache-2.0
// Also run under the thread sanitizer: begin() reads data that other threads have just stored.
#include "engine/team_attention.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <stdexcept>

#include "support/team.h"

namespace winnow::engine {
namespace {

constexpr int kThreads = 3;

/// Each thread stores its share without a lock, begin() adds them up, and each thread reads the sum.
class Sums : public TeamAttention {
 public:
  int begun = 0;
  std::array<int, kThreads> read{};
  std::array<int, kThreads> after_storing{};  ///< calls of later phases

  int failing_store = -1;  ///< the thread whose store() fails
  bool begin_fails = false;

  void run(int layer) {
    Tensors tensors;
    tensors.layer = layer;
    for (int number = 0; number < kPhases; ++number)
      test::on_team(kThreads, [&](Worker worker) { phase(number, tensors, worker); });
  }

 private:
  void store(const Tensors& tensors, Worker worker) override {
    if (worker.index == failing_store) throw std::runtime_error("store");
    stored_[worker.index] = tensors.layer + worker.index;
  }
  void begin(const Tensors& /*tensors*/) override {
    if (begin_fails) throw std::runtime_error("begin");
    ++begun;
    sum_ = std::accumulate(stored_.begin(), stored_.end(), 0);
  }
  void attend(const Tensors& /*tensors*/, Worker worker) override {
    read[worker.index] = sum_;
    ++after_storing[worker.index];
  }
  void reduce(Worker worker) override { ++after_storing[worker.index]; }
  void finish(const Tensors& /*tensors*/, Worker worker) override { ++after_storing[worker.index]; }

  std::array<int, kThreads> stored_{};
  int sum_ = 0;
};

TEST(TeamAttentionTest, begins_once_a_layer_with_what_all_threads_have_stored) {
  Sums attention;
  for (int layer = 0; layer < 200; ++layer) {
    attention.run(layer);
    const int sum = 3 * layer + 0 + 1 + 2;
    ASSERT_EQ(attention.begun, layer + 1);
    ASSERT_EQ(attention.read, (std::array{sum, sum, sum}));
  }
  EXPECT_EQ(attention.after_storing, (std::array{600, 600, 600}));
  EXPECT_NO_THROW(attention.rethrow());
}

TEST(TeamAttentionTest, error_of_any_thread_is_kept_and_skips_the_rest) {
  for (int thread = 0; thread < kThreads; ++thread) {
    Sums attention;
    attention.failing_store = thread;
    attention.run(0);
    attention.run(1);
    EXPECT_EQ(attention.begun, 0);
    EXPECT_EQ(attention.after_storing, (std::array{0, 0, 0}));
    EXPECT_THROW(attention.rethrow(), std::runtime_error);
  }
}

TEST(TeamAttentionTest, error_of_begin_is_kept_and_skips_the_rest) {
  Sums attention;
  attention.begin_fails = true;
  attention.run(0);
  EXPECT_EQ(attention.after_storing, (std::array{0, 0, 0}));
  EXPECT_THROW(attention.rethrow(), std::runtime_error);
}

}  // namespace
}  // namespace winnow::engine
