// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>

#include "server/http/body.h"
#include "server/http/message.h"
#include "server/http/room.h"
#include "server/http/stream.h"
#include "server/http/wire.h"

namespace winnow::server {

/// The client has gone, or sends something that deserves no answer.
class ClientGone : public std::exception {};

/// Reads the requests of a connection, one after another. All functions throw BadRequest, ClientGone.
class RequestReader {
 public:
  /// The arguments outlive the reader.
  RequestReader(Stream& stream, const HttpRoom& room);

  /// Waits for the first byte of the next request.
  boost::asio::awaitable<void> wait();
  /// Reads its header and checks it.
  boost::asio::awaitable<HttpHead> read_head();
  /// True if the whole request has been read.
  bool is_done() const { return parser_->is_done(); }
  /// The request's path, or "" if none could be read.
  std::string path() const;
  /// The framing of the reply.
  Framing framing() const;
  /// Reads its body.
  boost::asio::awaitable<HttpBody> read_body();
  /// Reads, during an answer, the beginning of the next request. Returns when the buffer is full.
  boost::asio::awaitable<void> read_ahead();
  /// Discards input until the client has gone.
  boost::asio::awaitable<void> drop_all();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  boost::asio::awaitable<void> read_more();
  /// Parses the received part of the header. Returns whether it is complete.
  bool parse_header();
  boost::asio::awaitable<void> read_some_of_body(ByteShare& share);
  void count_line(std::size_t bytes, boost::system::error_code& error);

  Stream& stream_;
  const HttpRoom& room_;
  const HttpLimits& limits_;
  boost::beast::flat_buffer buffer_;  ///< received, not yet parsed
  std::optional<Parser> parser_;      ///< of the last request
  std::string header_;                ///< its bytes, until they have been checked
  std::size_t line_bytes_ = 0;        ///< bytes of chunk extensions and trailers
};

}  // namespace winnow::server
