// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "server/http/room.h"
#include "server/http/tls_files.h"

namespace winnow::server {

/// Who can reach an address.
enum class Reach : std::uint8_t { this_machine, others };

/// A listening port. The room of its connections outlives it.
class Listener {
 public:
  /// Opens the port; 0 means any free one. Throws InputError if it is taken or not allowed, or if the address does not
  /// exist. With `tls` it speaks TLS, and throws as tls_context() before it opens the port.
  Listener(boost::asio::io_context& context, const std::string& host, int port, const std::optional<TlsFiles>& tls);

  /// The address for clients on this machine, such as `http://127.0.0.1:8080`, even if it listens on all addresses.
  std::string address() const;
  Reach reach() const;
  /// Starts to accept connections.
  void start(HttpRoom& room);

 private:
  boost::asio::awaitable<void> accept(HttpRoom& room);

  boost::asio::ssl::context* tls() { return tls_ ? &*tls_ : nullptr; }

  std::optional<boost::asio::ssl::context> tls_;
  boost::asio::ip::tcp::acceptor acceptor_;
  int connections_ = 0;
  int turned_away_ = 0;  ///< connections that are being told that there are too many
};

}  // namespace winnow::server
