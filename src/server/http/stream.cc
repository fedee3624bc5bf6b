// SPDX-License-Identifier: Apache-2.0
#include "server/http/stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/error.hpp>

namespace winnow::server {

namespace net = boost::asio;
using boost::system::error_code;

Stream::Stream(net::ip::tcp::socket socket, net::ssl::context* tls) : socket_(std::move(socket)) {
  if (tls != nullptr) tls_.emplace(socket_, *tls);
}

net::awaitable<void> Stream::handshake(error_code& error) {
  if (!tls_) co_return;
  co_await tls_->async_handshake(net::ssl::stream_base::server, into(error));
  is_open_ = !error;
}

bool Stream::falls_back_to_plain(const error_code& error) {
  const bool is_plain = error.category() == net::error::get_ssl_category() &&
                        ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_HTTP_REQUEST;
  if (is_plain) tls_.reset();
  return is_plain;
}

net::awaitable<void> Stream::end_output() {
  error_code error;
  if (tls_ && is_open_) co_await tls_->async_shutdown(into(error));
  socket_.shutdown(net::ip::tcp::socket::shutdown_send, error);
}

}  // namespace winnow::server
