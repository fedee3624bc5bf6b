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

/// A finished request, and what was kept of its first prompt.
struct FinishedRequest {
  std::string id;   ///< known to the client
  std::string key;  ///< of the client
  std::string spec;
  std::string budget;
  std::vector<Token> tokens;  ///< of the whole prompt
  std::shared_ptr<const KeptPositions> kept;

  std::size_t bytes() const;
};

/// The last finished requests, as many as fit into the limits.
class FinishedRequests {
 public:
  struct Limits {
    std::size_t requests = 64;
    std::size_t bytes = std::size_t{32} << 20;
  };

  FinishedRequests() = default;
  explicit FinishedRequests(const Limits& limits) : limits_(limits) {}

  void put(FinishedRequest request);
  /// Null if the owner has no request with this id.
  std::shared_ptr<const FinishedRequest> find(std::string_view id, std::string_view key) const;

 private:
  Limits limits_;
  std::deque<std::shared_ptr<const FinishedRequest>> requests_;  ///< the oldest first
  std::size_t bytes_ = 0;
};

}  // namespace winnow::server
