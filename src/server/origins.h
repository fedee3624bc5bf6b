// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace winnow::server {

/// Web pages that may use the server (CORS): those of this machine, the server's own, and a list. REQUIRES: requests
/// name the server by an allowed name (Hosts).
class Origins {
 public:
  explicit Origins(std::vector<std::string> origins) : origins_(std::move(origins)) {}

  /// True if a request comes from no page, or from an allowed one.
  bool allow(const HttpHead& head) const;
  /// Headers that tell the browser that the page is allowed.
  std::vector<Header> headers_for(const HttpHead& head) const;
  /// The reply to a preflight request (OPTIONS) for an allowed page. It allows any header: SDKs have many of their own,
  /// and none gives a page more rights.
  static HttpReply preflight(const HttpHead& head);

 private:
  std::vector<std::string> origins_;
};

}  // namespace winnow::server
