// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace winnow {

/// One of the `count` threads that run the same kernel at the same time. Kernels never start threads; they get their
/// index in a team, so that the same code runs under ggml's pool, under std::thread in tests, and alone.
struct Worker {
  int index = 0;
  int count = 1;
};

/// Begin of part `index` when `of` items are divided into `count` parts of almost equal size.
template <class Int>
constexpr Int part(Int of, int index, int count) {
  return static_cast<Int>(static_cast<std::int64_t>(of) * index / count);
}

/// Hands out the numbers 0 … size-1 to a team, each once, ascending. The meaning of a number must not depend on the
/// thread that takes it, so that results are the same for every thread count.
class WorkQueue {
 public:
  /// REQUIRES: called by one thread, before the team starts.
  void reset(int size) {
    size_ = size;
    next_.store(0, std::memory_order_relaxed);
  }
  /// The next item, or -1 if none is left.
  int take() {
    const int item = next_.fetch_add(1, std::memory_order_relaxed);
    return item < size_ ? item : -1;
  }
  int size() const { return size_; }

 private:
  int size_ = 0;
  std::atomic<int> next_{0};
};

}  // namespace winnow
