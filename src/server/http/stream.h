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

/// The token of operations that leave their error in `error` and do not throw.
inline auto into(boost::system::error_code& error) {
  return boost::asio::redirect_error(boost::asio::use_awaitable, error);
}

/// The bytes of a connection, by TLS or as they are. What Asio calls an AsyncReadStream and an AsyncWriteStream.
class Stream {
 public:
  using executor_type = boost::asio::ip::tcp::socket::executor_type;

  /// Null: no TLS. The context outlives the stream.
  Stream(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls);

  executor_type get_executor() { return socket_.get_executor(); }
  boost::asio::ip::tcp::socket& socket() { return socket_; }

  /// To be called first.
  boost::asio::awaitable<void> handshake(boost::system::error_code& error);
  /// Whether a handshake has failed because the client speaks plain HTTP. From then on so does the stream.
  bool falls_back_to_plain(const boost::system::error_code& error);
  /// Says that nothing more is sent.
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
  bool is_open_ = false;  ///< TLS has begun
};

}  // namespace winnow::server
