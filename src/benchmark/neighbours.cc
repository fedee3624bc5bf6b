// SPDX-License-Identifier: Apache-2.0
#include "benchmark/neighbours.h"

#include <utility>

namespace winnow::benchmark {

Neighbours::Neighbours(std::span<const std::unique_ptr<Contender>> contenders, Unit unit)
    : unit_(std::move(unit)), running_(static_cast<std::ptrdiff_t>(contenders.size())) {
  try {
    for (const auto& contender : contenders)
      runs_.push_back(std::async(std::launch::async, &Neighbours::run, this, std::ref(*contender)));
  } catch (...) {
    enough_ = true;  // not enough threads for all of them
    throw;
  }
  running_.wait();
}

void Neighbours::run(Contender& contender) {
  running_.count_down();
  while (!enough_) {
    contender.restore();
    unit_(contender, enough_);
  }
}

void Neighbours::finish() {
  enough_ = true;
  for (auto& run : runs_) run.get();
}

}  // namespace winnow::benchmark
