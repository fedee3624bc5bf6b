// SPDX-License-Identifier: Apache-2.0
#include "network/team.h"

#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check_memory.h"
#include "winnow/error.h"

namespace winnow::network {

namespace {

/// Threads that idle until the object is destroyed.
class Idle {
 public:
  explicit Idle(int most) { threads_.reserve(most); }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
  ~Idle() {
    end_.count_down();
    for (auto& thread : threads_) thread.join();
  }
  void add() {
    threads_.emplace_back([this] { end_.wait(); });
  }

 private:
  std::latch end_{1};
  std::vector<std::thread> threads_;
};

}  // namespace

void check_team(int threads) {
  if (threads > GGML_MAX_N_THREADS)
    throw UsageError(fmt::format("cannot run on {} threads: ggml supports at most {}", threads, GGML_MAX_N_THREADS));
  constexpr std::size_t kShared = std::size_t{1} << 20U;  // more than the threads' shared memory
  check_memory(kShared, fmt::format("a team of {} threads", threads));
  Idle idle(threads);
  for (int i = 1; i < threads; ++i) {  // the first thread is the caller
    try {
      idle.add();
    } catch (const std::system_error& error) {
      throw MemoryError(fmt::format("cannot start {} threads: {} after {} of them", threads, error.code().message(), i),
                        0);
    }
  }
}

}  // namespace winnow::network
