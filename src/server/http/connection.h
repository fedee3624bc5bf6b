// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "server/http/room.h"

namespace winnow::server {

/// Answers the requests of one client, one after another, until it closes or must close; by TLS unless `tls` is null.
/// Runs in the HTTP thread; the room outlives it.
boost::asio::awaitable<void> serve_connection(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls,
                                              HttpRoom& room);

/// Tells a client that there are too many connections.
boost::asio::awaitable<void> turn_away(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls,
                                       HttpRoom& room);

}  // namespace winnow::server
