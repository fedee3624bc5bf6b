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
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/http/exchange.h"
#include "server/http/request_reader.h"
#include "server/http/request_rules.h"
#include "server/http/stream.h"
#include "server/http/wire.h"

namespace winnow::server {

namespace {

namespace net = boost::asio;
using boost::system::error_code;
using net::ip::tcp;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, net::ssl::context* tls, HttpRoom& room)
      : stream_(std::move(socket), tls),
        room_(room),
        handler_(room.handler),
        limits_(room.limits),
        reader_(stream_, room),
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
    if (after == After::keeps) co_await send_last(handler_.refusal(status, sentence, ""));
    co_await close();
  }

 private:
  /// Closes the socket after `time`, unless this object is destroyed before.
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
      co_await send_last(handler_.refusal(400, "this port speaks TLS: use https", ""));
    co_return error ? After::closes : After::keeps;
  }

  /// Waits for the first byte of the next request.
  net::awaitable<bool> has_more() {
    const Deadline deadline(*this, limits_.idle_time);
    try {
      co_await reader_.wait();
    } catch (const ClientGone&) {
      co_return false;
    }
    co_return true;
  }

  /// Serves a request, or replies with an error if it is invalid and the client is still there.
  net::awaitable<After> serve_one() {
    HttpReply refusal;
    try {
      co_return co_await take_one();
    } catch (const ClientGone&) {
      co_return After::closes;
    } catch (const BadRequest& why) {
      refusal = handler_.refusal(why.status(), why.what(), reader_.path());
    }
    co_await send_last(std::move(refusal));
    co_return After::closes;
  }

  net::awaitable<After> take_one() {
    HttpHead head = co_await read_head();
    Framing framing = reader_.framing();
    framing.headers = handler_.headers_for(head);
    HttpReply early;
    const bool is_early = handler_.answers_head(head, early);
    const bool reads_body = !is_early && handler_.takes_body(head);
    if (!reads_body && !reader_.is_done()) framing.after = After::closes;  // the next bytes are not a request
    if (is_early) co_return co_await send(early, framing) ? framing.after : After::closes;
    HttpBody body;
    if (reads_body) body = co_await read_body(head);
    co_return co_await respond(std::move(head), std::move(body), framing);
  }

  net::awaitable<HttpHead> read_head() {
    const Deadline deadline(*this, limits_.header_time);
    co_return co_await reader_.read_head();
  }

  net::awaitable<HttpBody> read_body(const HttpHead& head) {
    const Deadline deadline(*this, limits_.body_time);
    if (!reader_.is_done() && lower_case(head.header("expect")) == "100-continue") {
      static const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      error_code error;
      co_await net::async_write(stream_, net::buffer(go_on), into(error));
      if (error) throw ClientGone();
    }
    co_return co_await reader_.read_body();
  }

  net::awaitable<After> respond(HttpHead head, HttpBody body, const Framing& framing) {
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

  /// Reads what the client sends during an answer. Returns when the client has gone.
  net::awaitable<void> watch() {
    try {
      co_await reader_.read_ahead();
    } catch (const ClientGone&) {
      co_return;
    }
    net::steady_timer never(stream_.get_executor(), net::steady_timer::time_point::max());
    co_await never.async_wait(
        net::use_awaitable);  // if a client sends this much ahead, a write will notice that it has gone
  }

  /// Sends an answer as it arrives. Returns whether all of it was sent.
  net::awaitable<bool> deliver(Exchange& exchange, const Framing& framing) {
    bool good = true;
    bool streams = false;
    while (good) {
      if (!exchange.is_ready()) {
        const bool silent = co_await is_silent();
        if (silent && streams && !exchange.is_ready()) exchange.break_silence();
        continue;
      }
      if (auto reply = exchange.take_reply()) co_return co_await send_counted(std::move(*reply), framing);
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

  /// Waits for more to send. Returns true if there was none for a long time.
  net::awaitable<bool> is_silent() {
    error_code woken;
    wake_.expires_after(limits_.silence);
    co_await wake_.async_wait(into(woken));
    co_return !woken;
  }

  net::awaitable<bool> send(const HttpReply& reply, const Framing& framing) {
    co_return co_await write(reply_bytes(reply, framing));
  }

  /// Sends a reply whose bytes are counted, since a slow client may take long to read it.
  net::awaitable<bool> send_counted(HttpReply reply, const Framing& framing) {
    ByteShare share(room_.replies);
    if (!share.grow_to(reply.body.size()))
      reply = handler_.refusal(503,
                               fmt::format("replies that clients have not read yet take {} bytes, which leaves no room "
                                           "for this one: try again later",
                                           room_.replies->held()),
                               reader_.path());
    std::string bytes = reply_bytes(reply, framing);
    reply = {};
    co_return co_await write(std::move(bytes));
  }

  net::awaitable<void> send_last(HttpReply reply) {
    const Framing framing{.after = After::closes};
    co_await send(reply, framing);
  }

  /// Writes in parts with a time limit each, so that slow readers of long replies are not cut off.
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

  /// Closes the connection after the client had time to read the reply: closing with unread input would make the
  /// client's system drop it.
  net::awaitable<void> close() {
    const Deadline deadline(*this, kLinger);
    co_await stream_.end_output();
    co_await reader_.drop_all();
    error_code ignored;
    stream_.socket().close(ignored);
  }

  /// Tells the handler that the request has ended, whatever the reason.
  struct Leaving {
    Connection& connection;
    Exchange& exchange;
    ~Leaving() {
      connection.exchange_ = nullptr;
      exchange.gone();
      connection.handler_.finished();
    }
  };

  static constexpr std::chrono::seconds kLinger{2};

  Stream stream_;
  HttpRoom& room_;
  HttpHandler& handler_;
  const HttpLimits& limits_;
  RequestReader reader_;
  net::steady_timer deadline_;
  net::steady_timer wake_;  ///< cancelled to wake the connection when there is more to send
  Exchange* exchange_ = nullptr;
};

}  // namespace

net::awaitable<void> serve_connection(tcp::socket socket, net::ssl::context* tls, HttpRoom& room) {
  const auto connection = std::make_shared<Connection>(std::move(socket), tls, room);
  co_await connection->run();
}

net::awaitable<void> turn_away(tcp::socket socket, net::ssl::context* tls, HttpRoom& room) {
  const auto connection = std::make_shared<Connection>(std::move(socket), tls, room);
  co_await connection->refuse(503,
                              fmt::format("{} connections are open, which is the most that is allowed: try again later",
                                          room.limits.connections));
}

}  // namespace winnow::server
