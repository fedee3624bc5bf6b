// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/http/message.h"

namespace winnow::server {

struct ApiKey {
  std::string name;  ///< what logs call it
  std::string key;
};

/// Who may use the server.
class Keys {
 public:
  explicit Keys(std::vector<ApiKey> keys) : keys_(std::move(keys)) {}

  /// Whether a request has one of the keys (`Authorization: Bearer KEY` or `X-Api-Key: KEY`), or none is asked for. The
  /// time that it takes tells nothing about the keys but their lengths.
  bool allow(const HttpHead& head) const { return keys_.empty() || find(head) != nullptr; }
  /// The key of a request; empty where none is asked for.
  std::string owner_of(const HttpHead& head) const;
  /// The name of a request's key; empty where it has none that is known.
  std::string name_of(const HttpHead& head) const;

 private:
  const ApiKey* find(const HttpHead& head) const;

  std::vector<ApiKey> keys_;
};

}  // namespace winnow::server
