// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/kept/positions.h"
#include "winnow/prompt.h"

namespace winnow::server {

/// A request that has been answered, and what was kept of its first prompt.
struct FinishedRequest {
  std::string id;   ///< that its client knows
  std::string key;  ///< of its owner
  std::string spec;
  std::string budget;
  std::vector<Token> tokens;  ///< of the whole prompt
  std::shared_ptr<const KeptPositions> kept;

  std::size_t bytes() const;
};

/// The last requests that have been answered, as many as fit into the limits.
class FinishedRequests {
 public:
  struct Limits {
    std::size_t requests = 64;
    std::size_t bytes = std::size_t{32} << 20;
  };

  FinishedRequests() = default;
  explicit FinishedRequests(const Limits& limits) : limits_(limits) {}

  void put(FinishedRequest request);
  /// Null: there is none with this id and this owner.
  std::shared_ptr<const FinishedRequest> find(std::string_view id, std::string_view key) const;

 private:
  Limits limits_;
  std::deque<std::shared_ptr<const FinishedRequest>> requests_;  ///< the oldest first
  std::size_t bytes_ = 0;
};

}  // namespace winnow::server
