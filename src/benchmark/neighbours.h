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

/// Contenders that repeat the same work, each on its own threads, while another one is measured.
class Neighbours {
 public:
  /// A unit of work; returns early if `enough` is true.
  using Unit = std::function<void(Contender& contender, const std::atomic<bool>& enough)>;

  /// Returns when all of them are running. `contenders` outlive this object.
  Neighbours(std::span<const std::unique_ptr<Contender>> contenders, Unit unit);
  ~Neighbours() { enough_ = true; }  // a future of std::async waits for its thread
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  /// Stops their work. Throws the exception of one of them, if any.
  void finish();

 private:
  void run(Contender& contender);

  Unit unit_;
  std::atomic<bool> enough_{false};
  std::latch running_;
  std::vector<std::future<void>> runs_;
};

}  // namespace winnow::benchmark
