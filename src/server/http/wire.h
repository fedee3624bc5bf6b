// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/http/message.h"

namespace winnow::server {

/// Fate of a connection after a request.
enum class After : std::uint8_t { keeps, closes };

/// How a reply is put on the wire.
struct Framing {
  unsigned version = 11;  ///< of HTTP, as Beast has it
  After after = After::keeps;
  bool has_body = true;
  std::vector<Header> headers = {};  ///< that the reply gets besides its own
};

/// The bytes of a whole reply.
std::string reply_bytes(const HttpReply& reply, const Framing& framing);

/// The bytes of a stream of server-sent events: its head, each part, its end.
std::string stream_head(const Framing& framing);
std::string stream_part(const std::string& bytes, const Framing& framing);
std::string stream_end(const Framing& framing);

}  // namespace winnow::server
