// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "server/http/message.h"

namespace winnow::server {

/// A request that is not taken. The connection is closed: where the next request begins is not known.
class BadRequest : public std::runtime_error {
 public:
  BadRequest(int status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// The head of a request from its target (`/path?query` or `http://host/path`). Throws BadRequest for another scheme.
HttpHead head_of(std::string_view method, std::string_view target, std::vector<Header> headers);

/// Whether a header has a line that goes on with the one before it, which RFC 9112 (5.2) lets a server refuse.
bool has_folded_line(std::string_view header);

/// Checks what RFC 9112 says of a request's host (3.2) and of its body's length (6.1, 6.3), where servers that read a
/// request in different ways can be played off against each other. `version` is 10 or 11. Throws BadRequest.
void check_request(const HttpHead& head, unsigned version);

}  // namespace winnow::server
