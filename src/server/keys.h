// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/http/message.h"

namespace winnow::server {

struct ApiKey {
  std::string name;  ///< shown in logs
  std::string key;
};

/// API keys that may use the server.
class Keys {
 public:
  explicit Keys(std::vector<ApiKey> keys) : keys_(std::move(keys)) {}

  /// True if a request has one of the keys (`Authorization: Bearer KEY` or `X-Api-Key: KEY`), or if no keys are needed.
  /// Its timing reveals only the keys' lengths.
  bool allow(const HttpHead& head) const { return keys_.empty() || find(head) != nullptr; }
  /// The key of a request; "" if no keys are needed.
  std::string owner_of(const HttpHead& head) const;
  /// The name of a request's key; "" if it has no known key.
  std::string name_of(const HttpHead& head) const;

 private:
  const ApiKey* find(const HttpHead& head) const;

  std::vector<ApiKey> keys_;
};

}  // namespace winnow::server
