// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

#include "server/http/limits.h"
#include "server/http/message.h"

namespace winnow::server {

/// A port that is listened to. The handler and the limits outlive it.
class Listener {
 public:
  /// Takes the port; 0 is any that is free. Throws InputError: it is taken, not allowed, or there is no such address.
  Listener(boost::asio::io_context& context, const std::string& host, int port);

  /// `127.0.0.1:8080`, as it is in a URL.
  std::string address() const;
  /// Accepts connections from now on.
  void start(HttpHandler& handler, const HttpLimits& limits);

 private:
  boost::asio::awaitable<void> accept(HttpHandler& handler, const HttpLimits& limits);

  boost::asio::ip::tcp::acceptor acceptor_;
  int connections_ = 0;
};

}  // namespace winnow::server
