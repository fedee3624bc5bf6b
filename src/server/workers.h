// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

namespace winnow::server {

/// A few threads for slow work that is not the model's: JSON, tokens, templates.
class Workers {
 public:
  /// Throws MemoryError if the threads cannot be started.
  explicit Workers(int threads);
  ~Workers();

  /// Asks the running actions to stop, where they check for it (StopScope).
  void request_stop() { stop_.request_stop(); }
  /// The same, and waits for their end; drops the other actions.
  void stop();

  void post(std::function<void()> action);

 private:
  struct Pool;
  std::stop_source stop_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace winnow::server
