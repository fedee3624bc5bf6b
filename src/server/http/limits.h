// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>

namespace winnow::server {

/// Limits for each connection, and for all of them together.
struct HttpLimits {
  int connections = 4096;                    ///< open at the same time
  int turned_away = 64;                      ///< connections beyond `connections` that get a reply; others are closed
                                             ///< without one
  std::size_t header_bytes = 16 << 10;       ///< of a request's header; the same again for the lines of its chunks and
                                             ///< trailers
  std::size_t header_fields = 100;           ///< of a request
  std::size_t body_bytes = 32 << 20;         ///< of a request
  std::size_t output_bytes = 4 << 20;        ///< of an answer that may wait for a slow client
  std::size_t all_replies_bytes = 64 << 20;  ///< of all complete replies that wait for slow clients
  std::chrono::seconds header_time{10};      ///< from a request's first byte, or the beginning of the connection
  std::chrono::seconds body_time{120};       ///< from the end of the header
  std::chrono::seconds idle_time{75};        ///< between two requests
  std::chrono::seconds write_time{30};       ///< for each part that is written
  std::chrono::seconds silence{8};           ///< of a stream, before the client gets a keep-alive

  /// Bytes of all bodies that are being received or wait for a worker.
  std::size_t all_bodies_bytes() const { return 8 * body_bytes; }
};

}  // namespace winnow::server
