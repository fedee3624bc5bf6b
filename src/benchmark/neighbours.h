// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <span>
#include <vector>

#include "benchmark/contender.h"

namespace winnow::benchmark {

/// Contenders that do the same work over and over, each on threads of its own, while another one is measured.
class Neighbours {
 public:
  /// A unit of work; returns early when `enough` is true.
  using Unit = std::function<void(Contender& contender, const std::atomic<bool>& enough)>;

  /// Returns when all of them are running. `contenders` outlive this object.
  Neighbours(std::span<const std::unique_ptr<Contender>> contenders, Unit unit);
  ~Neighbours() { enough_ = true; }  // a future of std::async waits for its thread
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  /// Ends their work. Throws what one of them has thrown.
  void finish();

 private:
  void run(Contender& contender);

  Unit unit_;
  std::atomic<bool> enough_{false};
  std::latch running_;
  std::vector<std::future<void>> runs_;
};

}  // namespace winnow::benchmark
