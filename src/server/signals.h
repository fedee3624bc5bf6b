// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace winnow::server {

/// Actions of SIGINT and SIGTERM. All are called by a thread that does nothing else.
struct SignalActions {
  std::function<void()> drain;    ///< at the first signal
  std::function<void()> stop;     ///< at the second one
  std::function<void()> give_up;  ///< at the third one, or when the process is still there some time after stop()
};

/// Waits for SIGINT and SIGTERM while it lives, in a thread of its own: they are heard whatever the other threads do.
class Signals {
 public:
  /// For what stop() has stopped to come to its end.
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
