// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace winnow::bench {

/// Seconds of each repetition of one kind of work.
class Times {
 public:
  void add(double seconds) { seconds_.push_back(seconds); }
  double least() const { return *std::min_element(seconds_.begin(), seconds_.end()); }
  double median() const {
    auto sorted = seconds_;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }

 private:
  std::vector<double> seconds_;
};

inline double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace winnow::bench
