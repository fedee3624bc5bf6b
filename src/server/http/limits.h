// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

namespace winnow::server {

/// Limits of a connection, and of all of them together.
struct HttpLimits {
  int connections = 4096;                    ///< at a time
  int turned_away = 64;                      ///< connections beyond these that are told so; the rest is closed
  std::size_t header_bytes = 16 << 10;       ///< of a request; so many again in the lines of its chunks and trailers
  std::size_t header_fields = 100;           ///< of a request
  std::size_t body_bytes = 32 << 20;         ///< of a request
  std::size_t output_bytes = 4 << 20;        ///< of an answer that wait for a slow reader
  std::size_t all_replies_bytes = 64 << 20;  ///< of all replies that are whole and wait for slow readers
  std::chrono::seconds header_time{10};      ///< from a request's first byte, or the connection's begin
  std::chrono::seconds body_time{120};       ///< from its header's end
  std::chrono::seconds idle_time{75};        ///< between two requests
  std::chrono::seconds write_time{30};       ///< for bytes to be taken by the reader
  std::chrono::seconds silence{8};           ///< in a stream, before its client is told that the request goes on

  /// Bytes of all bodies that are coming, or that wait for a worker.
  std::size_t all_bodies_bytes() const { return 8 * body_bytes; }
};

}  // namespace winnow::server
