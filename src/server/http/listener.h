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

/// A port that is listened to. The room of its connections outlives it.
class Listener {
 public:
  /// Takes the port; 0 is any that is free. Throws InputError: it is taken, not allowed, or there is no such address.
  /// With files it speaks TLS; throws InputError as tls_context(), before it takes the port.
  Listener(boost::asio::io_context& context, const std::string& host, int port, const std::optional<TlsFiles>& tls);

  /// Where this machine reaches it, such as `http://127.0.0.1:8080`, also when it listens on all addresses.
  std::string address() const;
  Reach reach() const;
  /// Accepts connections from now on.
  void start(HttpRoom& room);

 private:
  boost::asio::awaitable<void> accept(HttpRoom& room);

  boost::asio::ssl::context* tls() { return tls_ ? &*tls_ : nullptr; }

  std::optional<boost::asio::ssl::context> tls_;
  boost::asio::ip::tcp::acceptor acceptor_;
  int connections_ = 0;
  int turned_away_ = 0;  ///< those that are being told that they are too many
};

}  // namespace winnow::server
