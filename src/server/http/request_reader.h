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

/// The client has gone, or what it sends is not worth an answer.
class ClientGone : public std::exception {};

/// Reads the requests of a connection, one after another. All functions throw BadRequest, ClientGone.
class RequestReader {
 public:
  /// All outlive the reader.
  RequestReader(Stream& stream, const HttpRoom& room);

  /// Waits for the first byte of the next request.
  boost::asio::awaitable<void> wait();
  /// Reads its header and checks it.
  boost::asio::awaitable<HttpHead> read_head();
  /// Whether the request has come to its end: there is no body, or it has been read.
  bool is_done() const { return parser_->is_done(); }
  /// The path of the request; empty where it has none that can be read.
  std::string path() const;
  /// How it wants to be answered.
  Framing framing() const;
  /// Reads its body.
  boost::asio::awaitable<HttpBody> read_body();
  /// Reads what comes while a request is answered, as much as is taken of the next one. Returns when that is full.
  boost::asio::awaitable<void> read_ahead();
  /// Throws away what comes until the client has gone.
  boost::asio::awaitable<void> drop_all();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  boost::asio::awaitable<void> read_more();
  /// Gives the parser what has come of the header; whether that is all of it.
  bool parse_header();
  boost::asio::awaitable<void> read_some_of_body(ByteShare& share);
  void count_line(std::size_t bytes, boost::system::error_code& error);

  Stream& stream_;
  const HttpRoom& room_;
  const HttpLimits& limits_;
  boost::beast::flat_buffer buffer_;  ///< what has come and has not been parsed
  std::optional<Parser> parser_;      ///< of the last request
  std::string header_;                ///< its bytes, until they have been checked
  std::size_t line_bytes_ = 0;        ///< in what its chunks say besides their lengths
};

}  // namespace winnow::server
