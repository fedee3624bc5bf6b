// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

namespace winnow::server {

/// What a connection may take.
struct HttpLimits {
  int connections = 4096;                ///< at a time
  std::size_t header_bytes = 16 << 10;   ///< of a request
  std::size_t body_bytes = 32 << 20;     ///< of a request
  std::size_t output_bytes = 4 << 20;    ///< of an answer that wait for a slow reader
  std::chrono::seconds header_time{10};  ///< from a request's first byte, or the connection's begin
  std::chrono::seconds body_time{120};   ///< from its header's end
  std::chrono::seconds idle_time{75};    ///< between two requests
  std::chrono::seconds write_time{30};   ///< for bytes to be taken by the reader
  std::chrono::seconds silence{15};      ///< in a stream, before a comment is sent
};

}  // namespace winnow::server
