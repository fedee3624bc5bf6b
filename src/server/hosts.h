// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace winnow::server {

/// Names by which clients may call the server. A web page can make a name of its own resolve to this machine's address
/// (DNS rebinding); its requests then seem to come from the server's own page, and only their Host header differs. All
/// addresses are allowed, since they cannot be made to mean something else.
class Hosts {
 public:
  /// `names` are allowed besides `localhost`; `*`: all.
  explicit Hosts(std::vector<std::string> names);

  /// True if a request names an address or one of the names, with any port, or no host at all (HTTP/1.0).
  bool allow(const HttpHead& head) const;

 private:
  std::vector<std::string> names_;  ///< in lower case
};

/// The host in a Host header, in lower case, without its port and without a trailing dot.
std::string host_of(std::string_view header);

}  // namespace winnow::server
