// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

namespace winnow::server {

/// A few threads for what takes longer than a moment and is not the model's: JSON, tokens, templates.
class Workers {
 public:
  explicit Workers(int threads);
  ~Workers();

  /// Waits for what has begun; the rest is dropped.
  void stop();

  void post(std::function<void()> action);

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace winnow::server
