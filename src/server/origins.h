// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace winnow::server {

/// Which web pages may use the server (CORS): those of this machine, those that it serves itself, and a list. REQUIRES:
/// the requests call it by a name that it has (Hosts).
class Origins {
 public:
  explicit Origins(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  /// Whether a request comes from no page, or from one that may.
  bool allow(const HttpHead& head) const;
  /// Headers that tell the browser so.
  std::vector<Header> headers_for(const HttpHead& head) const;
  /// The answer to a browser that asks first (OPTIONS) for a page that may. The page may send any header: SDKs have
  /// many of their own, and none of them gives it more than it may do already.
  static HttpReply preflight(const HttpHead& head);

 private:
  std::vector<std::string> origins_;
};

}  // namespace winnow::server
