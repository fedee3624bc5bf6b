// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>
#include <vector>

#include "base/worker.h"

namespace winnow::test {

/// Runs stage(worker) on a team of threads, as ggml's thread pool does.
template <class Stage>
void on_team(int threads, const Stage& stage) {
  std::vector<std::thread> team;
  for (int i = 1; i < threads; ++i) team.emplace_back([&stage, i, threads] { stage(Worker{i, threads}); });
  stage(Worker{0, threads});
  for (auto& t : team) t.join();
}

}  // namespace winnow::test
