// SPDX-License-Identifier: Apache-2.0
// Any bytes from a client that sends nothing more: requests are answered one after another or refused, and the
// connection ends. The server of `winnow serve` is at the other end of a pair of sockets.
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <string>

#include "fuzz/server_site.h"
#include "server/http/connection.h"

namespace {

namespace net = boost::asio;
using net::ip::tcp;

struct Pair {
  explicit Pair(net::io_context& loop) : client(loop), server(loop) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    client.assign(tcp::v4(), ends[0]);
    server.assign(tcp::v4(), ends[1]);
  }

  tcp::socket client;
  tcp::socket server;
};

/// Sends everything, closes its side, and reads until the end.
net::awaitable<void> talk(tcp::socket& client, std::string bytes, std::string& replies) {
  boost::system::error_code error;
  co_await net::async_write(client, net::buffer(bytes), net::redirect_error(net::use_awaitable, error));
  client.shutdown(tcp::socket::shutdown_send, error);
  co_await net::async_read(client, net::dynamic_buffer(replies), net::redirect_error(net::use_awaitable, error));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static winnow::test::FuzzedServer server;
  static winnow::server::HttpRoom room(server.site(), server.limits());
  Pair pair(server.loop());
  std::string replies;
  net::co_spawn(server.loop(), talk(pair.client, std::string(data, size), replies), net::detached);
  net::co_spawn(server.loop(), winnow::server::serve_connection(std::move(pair.server), nullptr, room), net::detached);
  server.loop().restart();
  server.loop().run();
  if (server.site().active() != 0 || room.replies->held() != 0) std::abort();
  if (!replies.empty() && !replies.starts_with("HTTP/1.")) std::abort();
  // A message that quotes the request contains no line ends, so this status line is the server's own.
  if (replies.find("HTTP/1.1 500 Internal Server Error\r\n") != std::string::npos) std::abort();
  return 0;
}
