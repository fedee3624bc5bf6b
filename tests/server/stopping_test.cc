// SPDX-License-Identifier: Apache-2.0
// Work can be stopped, and signals are handled whatever the other threads do.
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <semaphore>

#include "base/stop_scope.h"
#include "server/signals.h"
#include "server/workers.h"

namespace winnow::server {
namespace {

/// Work that never ends by itself.
void work_for_ever(std::promise<void>& has_begun, std::promise<void>& has_stopped) {
  has_begun.set_value();
  try {
    while (true) StopScope::check();
  } catch (const Interrupted&) {
    has_stopped.set_value();
  }
}

TEST(Workers, WorkThatLooksForAStopEnds) {
  std::promise<void> begun[2];
  std::promise<void> stopped[2];
  Workers workers(2);
  for (int i = 0; i < 2; ++i) workers.post([&begun, &stopped, i] { work_for_ever(begun[i], stopped[i]); });
  for (auto& one : begun) one.get_future().wait();
  workers.request_stop();
  for (auto& one : stopped) one.get_future().wait();
  workers.stop();
}

TEST(Workers, StopEndsWhatHasBegunAndDropsTheRest) {
  std::promise<void> begun;
  std::promise<void> stopped;
  bool is_done = false;
  Workers workers(1);
  workers.post([&] { work_for_ever(begun, stopped); });
  workers.post([&is_done] { is_done = true; });
  begun.get_future().wait();
  workers.stop();
  stopped.get_future().wait();
  EXPECT_FALSE(is_done);
}

/// The thread that made the object only waits for the calls meanwhile.
TEST(Signals, DrainThenStopThenGiveUp) {
  for (const int number : {SIGTERM, SIGINT}) {
    std::binary_semaphore drained{0};
    std::binary_semaphore stopped{0};
    std::binary_semaphore given_up{0};
    const Signals signals({.drain = [&] { drained.release(); },
                           .stop = [&] { stopped.release(); },
                           .give_up = [&] { given_up.release(); }});
    std::raise(number);
    drained.acquire();
    EXPECT_FALSE(stopped.try_acquire());
    std::raise(number);
    stopped.acquire();
    EXPECT_FALSE(given_up.try_acquire());
    std::raise(number);
    given_up.acquire();
  }
}

TEST(Signals, WhatDoesNotStopIsGivenUpWithoutAThirdOne) {
  std::binary_semaphore drained{0};
  std::binary_semaphore given_up{0};
  const Signals signals({.drain = [&] { drained.release(); }, .stop = [] {}, .give_up = [&] { given_up.release(); }});
  std::raise(SIGTERM);
  drained.acquire();
  std::raise(SIGTERM);
  given_up.acquire();
}

}  // namespace
}  // namespace winnow::server
