// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace winnow::server {

/// Actions for SIGINT and SIGTERM, called by a thread that does nothing else.
struct SignalActions {
  std::function<void()> drain;    ///< at the first signal
  std::function<void()> stop;     ///< at the second one
  std::function<void()> give_up;  ///< at the third one, or if the process still runs some time after stop()
};

/// Waits for SIGINT and SIGTERM during its lifetime, in its own thread, so that no other thread can block them.
class Signals {
 public:
  /// Time between stop() and give_up().
  static constexpr std::chrono::seconds kPatience{2};

  explicit Signals(SignalActions actions);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::server
