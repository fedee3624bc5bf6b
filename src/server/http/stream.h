// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <utility>

namespace winnow::server {

/// A completion token for operations that set `error` instead of throwing.
inline auto into(boost::system::error_code& error) {
  return boost::asio::redirect_error(boost::asio::use_awaitable, error);
}

/// The byte stream of a connection, with or without TLS. Models Asio's AsyncReadStream and AsyncWriteStream.
class Stream {
 public:
  using executor_type = boost::asio::ip::tcp::socket::executor_type;

  /// `tls` may be null: no TLS. The context outlives the stream.
  Stream(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls);

  executor_type get_executor() { return socket_.get_executor(); }
  boost::asio::ip::tcp::socket& socket() { return socket_; }

  /// Must be called first.
  boost::asio::awaitable<void> handshake(boost::system::error_code& error);
  /// True if the handshake failed because the client speaks plain HTTP. From then on the stream does, too.
  bool falls_back_to_plain(const boost::system::error_code& error);
  /// Shuts down the sending side.
  boost::asio::awaitable<void> end_output();

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return tls_ ? tls_->async_read_some(buffers, std::forward<Token>(token))
                : socket_.async_read_some(buffers, std::forward<Token>(token));
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return tls_ ? tls_->async_write_some(buffers, std::forward<Token>(token))
                : socket_.async_write_some(buffers, std::forward<Token>(token));
  }

 private:
  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  bool is_open_ = false;  ///< a TLS connection is established
};

}  // namespace winnow::server
