// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/http/message.h"

namespace winnow::server {

/// Handling of a connection after a request.
enum class After : std::uint8_t { keeps, closes };

/// How a reply is written to the connection.
struct Framing {
  unsigned version = 11;  ///< of HTTP, in Beast's numbering
  After after = After::keeps;
  bool has_body = true;
  std::vector<Header> headers = {};  ///< additional headers of the reply
};

/// The bytes of a complete reply.
std::string reply_bytes(const HttpReply& reply, const Framing& framing);

/// The bytes of a stream of server-sent events: its head, each part, its end.
std::string stream_head(const Framing& framing);
std::string stream_part(const std::string& bytes, const Framing& framing);
std::string stream_end(const Framing& framing);

}  // namespace winnow::server
