// SPDX-License-Identifier: Apache-2.0
#include "server/http/listener.h"

#include <spdlog/fmt/fmt.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/log.h"
#include "server/http/connection.h"
#include "server/http/tls.h"
#include "winnow/error.h"

namespace winnow::server {

namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

tcp::endpoint endpoint_of(net::io_context& context, const std::string& host, int port) {
  tcp::resolver resolver(context);
  error_code error;
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty())
    throw InputError(fmt::format("cannot listen on {}: there is no such address ({})", host, error.message()));
  return found.begin()->endpoint();
}

}  // namespace

Listener::Listener(net::io_context& context, const std::string& host, int port, const std::optional<TlsFiles>& tls)
    : acceptor_(context) {
  if (tls) tls_.emplace(tls_context(*tls));
  const tcp::endpoint endpoint = endpoint_of(context, host, port);
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(net::socket_base::max_listen_connections, error);
  if (error == net::error::address_in_use)
    throw InputError(fmt::format("port {} of {} is in use: choose another one with --port", port, host));
  if (error) throw InputError(fmt::format("cannot listen on port {} of {}: {}", port, host, error.message()));
}

std::string Listener::address() const {
  const auto endpoint = acceptor_.local_endpoint();
  auto at = endpoint.address();
  if (at.is_unspecified() && at.is_v6()) at = net::ip::address_v6::loopback();
  if (at.is_unspecified()) at = net::ip::address_v4::loopback();
  const std::string host = at.to_string();
  return fmt::format("{}://{}:{}", tls_ ? "https" : "http", at.is_v6() ? "[" + host + "]" : host, endpoint.port());
}

Reach Listener::reach() const {
  return acceptor_.local_endpoint().address().is_loopback() ? Reach::this_machine : Reach::others;
}

void Listener::start(HttpRoom& room) { net::co_spawn(acceptor_.get_executor(), accept(room), net::detached); }

net::awaitable<void> Listener::accept(HttpRoom& room) {
  const auto executor = acceptor_.get_executor();
  net::steady_timer pause(executor);
  const auto left = [](int& count) { return [&count](const std::exception_ptr& /*error*/) { --count; }; };
  while (acceptor_.is_open()) {
    error_code error;
    tcp::socket socket = co_await acceptor_.async_accept(net::redirect_error(net::use_awaitable, error));
    if (error) {  // most likely too many open files: some will be closed soon
      log().debug("cannot accept a connection: {}", error.message());
      pause.expires_after(std::chrono::milliseconds(100));
      co_await pause.async_wait(net::redirect_error(net::use_awaitable, error));
    } else if (connections_ < room.limits.connections) {
      ++connections_;
      net::co_spawn(executor, serve_connection(std::move(socket), tls(), room), left(connections_));
    } else if (turned_away_ < room.limits.turned_away) {
      ++turned_away_;
      net::co_spawn(executor, turn_away(std::move(socket), tls(), room), left(turned_away_));
    }
  }
}

}  // namespace winnow::server
