// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/http/exchange.h"
#include "server/http/stream.h"
#include "server/http/wire.h"

namespace winnow::server {

namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;
using Parser = http::request_parser<http::string_body>;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

HttpHead head_of(const Parser::value_type& request) {
  HttpHead out;
  out.method = request.method_string();
  const std::string_view target(request.target().data(), request.target().size());
  out.path = target.substr(0, target.find('?'));
  for (const auto& field : request) out.headers.emplace_back(lower(field.name_string()), field.value());
  return out;
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, net::ssl::context* tls, HttpHandler& handler, const HttpLimits& limits)
      : stream_(std::move(socket), tls),
        handler_(handler),
        limits_(limits),
        deadline_(stream_.get_executor()),
        wake_(stream_.get_executor()) {
    wake_.expires_at(net::steady_timer::time_point::max());
  }

  net::awaitable<void> run() {
    error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    After after = co_await shake_hands();
    for (bool first = true; after == After::keeps; first = false) {
      if (!first && !co_await has_more()) break;
      after = co_await serve_one();
    }
    co_await close();
  }

  net::awaitable<void> refuse(int status, std::string sentence) {
    const After after = co_await shake_hands();
    if (after == After::keeps) co_await send_last(handler_.refusal(status, sentence));
    co_await close();
  }

 private:
  /// Closes the socket when it lives longer than the time.
  class Deadline {
   public:
    Deadline(Connection& connection, std::chrono::seconds time) : connection_(connection) {
      connection_.deadline_.expires_after(time);
      connection_.deadline_.async_wait([late = connection.weak_from_this()](const error_code& error) {
        const auto self = late.lock();
        if (error || !self || self->deadline_.expiry() > net::steady_timer::clock_type::now()) return;
        error_code ignored;
        self->stream_.socket().close(ignored);
      });
    }
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;
    ~Deadline() { connection_.deadline_.expires_at(net::steady_timer::time_point::max()); }

   private:
    Connection& connection_;
  };

  net::awaitable<After> shake_hands() {
    error_code error;
    {
      const Deadline deadline(*this, limits_.header_time);
      co_await stream_.handshake(error);
    }
    if (stream_.falls_back_to_plain(error))
      co_await send_last(handler_.refusal(400, "this port speaks TLS: use https"));
    co_return error ? After::closes : After::keeps;
  }

  /// Waits for the first byte of the next request.
  net::awaitable<bool> has_more() {
    if (buffer_.size() > 0) co_return true;
    const Deadline deadline(*this, limits_.idle_time);
    error_code error;
    buffer_.commit(co_await stream_.async_read_some(buffer_.prepare(kRead), into(error)));
    co_return !error;
  }

  net::awaitable<After> serve_one() {
    Parser parser;
    parser.header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
    parser.body_limit(limits_.body_bytes);
    error_code error;
    {
      const Deadline deadline(*this, limits_.header_time);
      co_await http::async_read_header(stream_, buffer_, parser, into(error));
    }
    if (error) co_return co_await refuse_bad(error);
    HttpHead head = head_of(parser.get());
    Framing framing{parser.get().version(), parser.keep_alive() ? After::keeps : After::closes,
                    parser.get().method() != http::verb::head, handler_.headers_for(head)};
    HttpReply early;
    if (handler_.answers_head(head, early)) {
      if (!parser.is_done()) framing.after = After::closes;  // what comes next is not a request
      co_return co_await send(early, framing) ? framing.after : After::closes;
    }
    error = co_await read_body(parser, head);
    if (error) co_return co_await refuse_bad(error);
    co_return co_await respond(std::move(head), std::move(parser.get().body()), framing);
  }

  net::awaitable<error_code> read_body(Parser& parser, const HttpHead& head) {
    error_code error;
    if (parser.is_done()) co_return error;
    const Deadline deadline(*this, limits_.body_time);
    if (lower(head.header("expect")) == "100-continue") {
      static const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await net::async_write(stream_, net::buffer(go_on), into(error));
    }
    if (!error) co_await http::async_read(stream_, buffer_, parser, into(error));
    co_return error;
  }

  /// Says what is wrong with a request, where there is somebody to hear it.
  net::awaitable<After> refuse_bad(error_code error) {
    const Framing framing{.after = After::closes};
    HttpReply reply;
    if (error == http::error::body_limit) {
      reply = handler_.refusal(413, fmt::format("the body is larger than {} bytes", limits_.body_bytes));
    } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      reply = handler_.refusal(431, fmt::format("the header is larger than {} bytes", limits_.header_bytes));
    } else if (error == http::error::end_of_stream || error == http::error::partial_message ||
               error.category() != make_error_code(http::error::bad_method).category()) {
      co_return After::closes;
    } else {
      reply = handler_.refusal(400, fmt::format("this is no HTTP request: {}", error.message()));
    }
    co_await send(reply, framing);
    co_return After::closes;
  }

  net::awaitable<After> respond(HttpHead head, std::string body, const Framing& framing) {
    using namespace net::experimental::awaitable_operators;
    const auto to_http = [executor = stream_.get_executor()](std::function<void()> action) {
      net::post(executor, std::move(action));
    };
    const auto exchange = std::make_shared<Exchange>(
        to_http, [this] { on_output(); }, limits_.output_bytes);
    exchange_ = exchange.get();
    const Leaving leaving{*this, *exchange};
    handler_.handle(std::move(head), std::move(body), exchange);
    const auto outcome = co_await (deliver(*exchange, framing) || watch());
    if (outcome.index() != 0 || !std::get<0>(outcome)) co_return After::closes;
    exchange->done();
    co_return framing.after;
  }

  void on_output() {
    error_code ignored;
    if (exchange_ != nullptr && exchange_->is_overflowed()) stream_.socket().close(ignored);
    wake_.cancel();
  }

  /// Reads what comes while an answer is made. Returns when the client has gone.
  net::awaitable<void> watch() {
    error_code error;
    while (!error && buffer_.size() < limits_.header_bytes)
      buffer_.commit(co_await stream_.async_read_some(buffer_.prepare(kRead), into(error)));
    if (error) co_return;
    net::steady_timer never(stream_.get_executor(), net::steady_timer::time_point::max());
    co_await never.async_wait(
        net::use_awaitable);  // a client that sends so much ahead is seen to go when it is written to
  }

  /// Sends an answer as it comes; whether it has been sent as a whole.
  net::awaitable<bool> deliver(Exchange& exchange, const Framing& framing) {
    bool good = true;
    bool streams = false;
    while (good) {
      if (!exchange.is_ready()) {
        const bool silent = co_await is_silent();
        if (silent && streams && !exchange.is_ready()) good = co_await write(stream_part(": \n\n", framing));
        continue;
      }
      if (const auto reply = exchange.take_reply()) co_return co_await send(*reply, framing);
      if (exchange.take_begin()) {
        streams = true;
        good = co_await write(stream_head(framing));
      }
      const std::string bytes = exchange.take_bytes();
      if (good && !bytes.empty()) good = co_await write(stream_part(bytes, framing));
      if (good && exchange.is_ended() && exchange.has_sent_all()) co_return co_await write(stream_end(framing));
    }
    co_return false;
  }

  /// Waits until there is more to send, or has not been for long; whether that is so.
  net::awaitable<bool> is_silent() {
    error_code woken;
    wake_.expires_after(limits_.silence);
    co_await wake_.async_wait(into(woken));
    co_return !woken;
  }

  net::awaitable<bool> send(const HttpReply& reply, const Framing& framing) {
    co_return co_await write(reply_bytes(reply, framing));
  }

  net::awaitable<void> send_last(HttpReply reply) {
    const Framing framing{.after = After::closes};
    co_await send(reply, framing);
  }

  /// Each part gets its time, so that a slow reader of much is not cut off.
  net::awaitable<bool> write(std::string bytes) {
    constexpr std::size_t kPart = 64 << 10;
    error_code error;
    for (std::size_t at = 0; at < bytes.size() && !error; at += kPart) {
      const Deadline deadline(*this, limits_.write_time);
      const std::size_t size = std::min(kPart, bytes.size() - at);
      co_await net::async_write(stream_, net::buffer(bytes.data() + at, size), into(error));
    }
    co_return !error;
  }

  /// Closes the connection when the client has had time to read what was sent: bytes that are not read would make its
  /// system drop it.
  net::awaitable<void> close() {
    const Deadline deadline(*this, kLinger);
    co_await stream_.end_output();
    error_code error;
    while (!error) {
      buffer_.clear();
      co_await stream_.socket().async_read_some(buffer_.prepare(kRead), into(error));
    }
    stream_.socket().close(error);
  }

  /// However a request ends: its handler hears of it, unless all was sent.
  struct Leaving {
    Connection& connection;
    Exchange& exchange;
    ~Leaving() {
      connection.exchange_ = nullptr;
      exchange.gone();
      connection.handler_.finished();
    }
  };

  static constexpr std::size_t kRead = 4096;
  static constexpr std::chrono::seconds kLinger{2};

  Stream stream_;
  HttpHandler& handler_;
  const HttpLimits& limits_;
  boost::beast::flat_buffer buffer_;  ///< what has come and belongs to the next request
  net::steady_timer deadline_;
  net::steady_timer wake_;  ///< cancelled when there is more to send
  Exchange* exchange_ = nullptr;
};

}  // namespace

net::awaitable<void> serve_connection(tcp::socket socket, net::ssl::context* tls, HttpHandler& handler,
                                      const HttpLimits& limits) {
  const auto connection = std::make_shared<Connection>(std::move(socket), tls, handler, limits);
  co_await connection->run();
}

net::awaitable<void> turn_away(tcp::socket socket, net::ssl::context* tls, HttpHandler& handler,
                               const HttpLimits& limits) {
  const auto connection = std::make_shared<Connection>(std::move(socket), tls, handler, limits);
  co_await connection->refuse(
      503, fmt::format("{} connections are open, and no more are allowed: try again later", limits.connections));
}

}  // namespace winnow::server
