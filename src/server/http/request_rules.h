// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace winnow::server {

/// A refused request. The connection must be closed, since the beginning of the next request is unknown.
class BadRequest : public std::runtime_error {
 public:
  BadRequest(int status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// Parses a request's target (`/path?query` or `http://host/path`). Throws BadRequest for another scheme.
HttpHead head_of(std::string_view method, std::string_view target, std::vector<Header> headers);

/// True if a header has a folded line, which RFC 9112 (5.2) allows a server to refuse.
bool has_folded_line(std::string_view header);

/// Checks RFC 9112's rules on a request's host (3.2) and its body's length (6.1, 6.3), which prevent request smuggling.
/// `version` is 10 or 11. Throws BadRequest.
void check_request(const HttpHead& head, unsigned version);

}  // namespace winnow::server
