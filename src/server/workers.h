// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

namespace winnow::server {

/// A few threads for what takes longer than a moment and is not the model's: JSON, tokens, templates.
class Workers {
 public:
  /// Throws MemoryError where they cannot be started.
  explicit Workers(int threads);
  ~Workers();

  /// Has what has begun end where it looks for that (StopScope).
  void request_stop() { stop_.request_stop(); }
  /// The same, and waits for its end; the rest is dropped.
  void stop();

  void post(std::function<void()> action);

 private:
  struct Pool;
  std::stop_source stop_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace winnow::server
