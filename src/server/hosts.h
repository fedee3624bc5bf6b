// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace winnow::server {

/// By which names the server may be called. A web page can make a name of its own mean this machine's address (DNS
/// rebinding); its requests then seem to come from the server's own page, and only their Host header tells. Addresses
/// cannot be made to mean something else, so all are allowed.
class Hosts {
 public:
  /// Names besides `localhost`; `*`: all.
  explicit Hosts(std::vector<std::string> names);

  /// Whether a request names an address or one of the names, with any port, or no host at all (HTTP/1.0).
  bool allow(const HttpHead& head) const;

 private:
  std::vector<std::string> names_;  ///< in lower case
};

/// The host of a Host header, in lower case: without its port, and without the dot that may end a name.
std::string host_of(std::string_view header);

}  // namespace winnow::server
