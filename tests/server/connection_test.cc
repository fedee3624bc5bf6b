// SPDX-License-Identifier: Apache-2.0
// A connection over a pair of sockets with a handler that records its calls: which requests are accepted, which are
// refused, and how many bytes are held meanwhile.
#include "server/http/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace winnow::server {
namespace {

namespace net = boost::asio;
using net::ip::tcp;

/// Accepts bodies by POST, and records every request in `seen`.
class Notes : public HttpHandler {
 public:
  std::vector<Header> headers_for(const HttpHead& /*head*/) const override { return {}; }
  bool answers_head(const HttpHead& head, HttpReply& reply) const override {
    reply = {401, "no"};
    return head.path == "/locked";
  }
  bool takes_body(const HttpHead& head) const override { return head.method == "POST"; }
  void handle(HttpHead head, HttpBody body, std::shared_ptr<Responder> to) override {
    seen.push_back(head.method + " " + head.path + " " + body.text());
    kept.push_back(std::move(body));
    if (head.path == "/silent") return begin_silently(to);
    to->send({200, std::string(reply_bytes, 'r')});
  }
  void finished() override {}
  HttpReply refusal(int status, const std::string& sentence, const std::string& /*path*/) const override {
    return {status, sentence};
  }

  /// Begins a stream that writes only when the connection has been silent.
  void begin_silently(const std::shared_ptr<Responder>& to) {
    to->begin();
    to->on_silence([this, to] {
      to->write("still " + std::to_string(++silences));
      if (silences == 3) to->end();
    });
  }

  int silences = 0;
  std::size_t reply_bytes = 2;
  std::vector<std::string> seen;
  std::vector<HttpBody> kept;
};

class Pair {
 public:
  explicit Pair(net::io_context& loop) : client(loop), server(loop) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) throw std::runtime_error("socketpair");
    client.assign(tcp::v4(), ends[0]);
    server.assign(tcp::v4(), ends[1]);
  }

  tcp::socket client;
  tcp::socket server;
};

/// Sends `begin` once and `middle` `times` times, then reads all replies. `sent` counts the bytes that the server's
/// socket accepted. The client's side stays open until the end, since the server drops clients that close it.
net::awaitable<void> talk(tcp::socket& client, std::string begin, std::string middle, int times, std::size_t& sent,
                          std::string& replies) {
  boost::system::error_code error;
  sent += co_await net::async_write(client, net::buffer(begin), net::redirect_error(net::use_awaitable, error));
  for (int i = 0; i < times && !error; ++i)
    sent += co_await net::async_write(client, net::buffer(middle), net::redirect_error(net::use_awaitable, error));
  co_await net::async_read(client, net::dynamic_buffer(replies), net::redirect_error(net::use_awaitable, error));
  client.close(error);
}

class ConnectionTest : public ::testing::Test {
 protected:
  static HttpLimits small_limits() {
    HttpLimits out;
    out.body_bytes = 1 << 20;
    out.idle_time = std::chrono::seconds(0);
    return out;
  }

  /// The server's reply to some bytes.
  std::string replies_to(const std::string& begin, const std::string& middle = "", int times = 0) {
    net::io_context loop;
    Pair pair(loop);
    std::string replies;
    sent_ = 0;
    net::co_spawn(loop, talk(pair.client, begin, middle, times, sent_, replies), net::detached);
    net::co_spawn(loop, serve_connection(std::move(pair.server), nullptr, room_), net::detached);
    loop.run();
    return replies;
  }

  /// The statuses of all replies to some bytes.
  std::vector<int> statuses(const std::string& bytes) {
    std::vector<int> out;
    const std::string replies = replies_to(bytes);
    constexpr std::string_view kLine = "HTTP/1.1 ";
    for (auto at = replies.find(kLine); at != std::string::npos; at = replies.find(kLine, at + 1))
      out.push_back(std::stoi(replies.substr(at + kLine.size(), 3)));
    return out;
  }

  Notes notes_;
  HttpLimits limits_ = small_limits();
  HttpRoom room_{notes_, limits_};
  std::size_t sent_ = 0;
};

/// Requests that another server may parse differently. Each would hide a second request in the first one's body.
TEST_F(ConnectionTest, WhatCouldHideAnotherRequestIsRefused) {
  const std::string hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string length = "Content-Length: " + std::to_string(hidden.size()) + "\r\n";
  const std::pair<std::string, int> cases[] = {
      {"Host: a\r\nTransfer-Encoding: gzip\r\n", 400},
      {"Host: a\r\nTransfer-Encoding: identity\r\n", 400},
      {"Host: a\r\nTransfer-Encoding: chunked, gzip\r\n", 400},
      {"Host: a\r\nTransfer-Encoding: chunked, chunked\r\n", 400},
      {"Host: a\r\nTransfer-Encoding: xchunked\r\n", 400},
      {"Host: a\r\nTransfer-Encoding: \"chunked\"\r\n", 400},
      {"Host: a\r\nTransfer-Encoding:\r\n", 400},
      {"Host: a\r\nTransfer-Encoding: gzip, chunked\r\n", 501},
      {"Host: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", 501},
      {"Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Host: a\r\nTransfer-Encoding: chunked\r\n" + length, 400},
      {"Host: a\r\n" + length + "Transfer-Encoding: chunked\r\n", 400},
      {"Host: a\r\nTransfer-Encoding: gzip\r\n" + length, 400},
      {"Host: a\r\n" + length + length, 400},
      {"Host: a\r\n" + length + "Content-Length: 0\r\n", 400},
      {"Host: a\r\nContent-Length: 0, 0\r\n", 400},
      {"Host: a\r\nContent-Length: +5\r\n", 400},
      {"Host: a\r\nContent-Length: -5\r\n", 400},
      {"Host: a\r\nContent-Length: 1 2\r\n", 400},
      {"Host: a\r\nContent-Length: 0x5\r\n", 400},
      {"Host: a\r\nContent-Length:\r\n", 400},
      {"Host: a\r\nContent-Length: 99999999999999999999\r\n", 400},
      {"Host: a\r\nContent-Length : 5\r\n", 400},
      {"Host : a\r\n", 400},
      {" Host: a\r\n", 400},
      {"Host: a\r\nX: y\r\n z\r\n", 400},
      {"Host: a\r\nX: y\r\n\tTransfer-Encoding: chunked\r\n", 400},
      {"Host: a\r\nX: y\nTransfer-Encoding: chunked\r\n", 400},
      {"Host: a\r\nX: y\rTransfer-Encoding: chunked\r\n", 400},
      {std::string("Host: a\r\nX: y\0z\r\n", 16), 400},
      {"", 400},
      {"Host: a\r\nHost: a\r\n", 400},
      {"Host: a\r\nHost: b\r\n", 400},
      {"Host: a, b\r\n", 400},
      {"Host: a/b\r\n", 400},
      {"Host: user@a\r\n", 400},
      {"Host: a b\r\n", 400},
  };
  for (const auto& [headers, status] : cases) {
    EXPECT_EQ(statuses("POST /x HTTP/1.1\r\n" + headers + "\r\n" + hidden), std::vector{status}) << headers;
    EXPECT_EQ(notes_.seen, std::vector<std::string>()) << headers;
    notes_.seen.clear();
  }
}

TEST_F(ConnectionTest, RequestsThatAreAsTheyMustBeAreTaken) {
  EXPECT_EQ(statuses("POST /x HTTP/1.1\r\nHost: a:1\r\nContent-Length: 2\r\n\r\nhi"
                     "POST /y HTTP/1.1\r\nHost:\r\nTransfer-Encoding: Chunked\r\n\r\n2;x=y\r\nho\r\n0\r\nT: t\r\n\r\n"
                     "GET /z?q HTTP/1.1\r\nHost: [::1]:1\r\n\r\n"),
            (std::vector{200, 200, 200}));
  EXPECT_EQ(notes_.seen, (std::vector<std::string>{"POST /x hi", "POST /y ho", "GET /z "}));
}

TEST_F(ConnectionTest, HandlerMaySaySomethingWheneverItsStreamWasSilent) {
  limits_.silence = std::chrono::seconds(0);
  const auto replies = replies_to("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_NE(replies.find("7\r\nstill 1\r\n7\r\nstill 2\r\n7\r\nstill 3\r\n0\r\n"), std::string::npos) << replies;
}

TEST_F(ConnectionTest, TargetMayNameTheHostThatTheHeaderNames) {
  EXPECT_EQ(statuses("GET http://A:1/x?q HTTP/1.1\r\nHost: a:1\r\n\r\nGET HTTP://a HTTP/1.1\r\nHost: a\r\n\r\n"),
            (std::vector{200, 200}));
  EXPECT_EQ(notes_.seen, (std::vector<std::string>{"GET /x ", "GET / "}));
  EXPECT_EQ(statuses("GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n"), std::vector{400});
  EXPECT_EQ(statuses("GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n"), std::vector{400});
}

TEST_F(ConnectionTest, OldRequestNeedsNoHostAndHasNoCodings) {
  EXPECT_TRUE(replies_to("GET /x HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200"));
  EXPECT_EQ(statuses("POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), std::vector{400});
}

TEST_F(ConnectionTest, BodyThatNobodyTakesIsNotRead) {
  for (const char* const coding : {"Content-Length: 1000000", "Transfer-Encoding: chunked"}) {
    const auto replies = replies_to(std::string("GET /x HTTP/1.1\r\nHost: a\r\n") + coding + "\r\n\r\nhidden");
    EXPECT_TRUE(replies.starts_with("HTTP/1.1 200")) << replies;
    EXPECT_NE(replies.find("Connection: close"), std::string::npos);
  }
  EXPECT_EQ(statuses("POST /locked HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nhidden"), std::vector{401});
  EXPECT_EQ(room_.bodies->peak(), 0U);
}

/// A client sends until the server closes: of 64 MiB it can send only what the sockets' buffers hold, and the server
/// keeps no more than a line.
TEST_F(ConnectionTest, LinesBetweenChunksAreBounded) {
  const std::string head = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string much(1 << 16, 'x');
  EXPECT_TRUE(replies_to(head + "5;", much, 1024).starts_with("HTTP/1.1 431"));
  EXPECT_TRUE(replies_to(head + "0\r\nT: ", much, 1024).starts_with("HTTP/1.1 431"));
  EXPECT_TRUE(replies_to(head, "1;" + std::string(1000, 'x') + "\r\nb\r\n", 100).starts_with("HTTP/1.1 431"));
  EXPECT_EQ(notes_.seen, std::vector<std::string>());
  EXPECT_LE(room_.bodies->peak(), 1000U);
}

TEST_F(ConnectionTest, HeaderHasSoManyFields) {
  const auto fields = [](std::size_t count) {
    std::string out = "GET /x HTTP/1.1\r\nHost: a\r\n";
    for (std::size_t i = 1; i < count; ++i) out += "a:\r\n";
    return out + "\r\n";
  };
  EXPECT_EQ(statuses(fields(limits_.header_fields)), std::vector{200});
  EXPECT_EQ(statuses(fields(limits_.header_fields + 1)), std::vector{431});
}

TEST_F(ConnectionTest, BodiesAreBoundedTogetherAndCountedUntilTheyAreDropped) {
  const std::string body(limits_.body_bytes, 'b');
  const std::string request =
      "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  const auto fit = limits_.all_bodies_bytes() / limits_.body_bytes;
  for (std::size_t i = 0; i + 1 < fit; ++i) EXPECT_TRUE(replies_to(request + body).starts_with("HTTP/1.1 200"));
  EXPECT_GE(room_.bodies->held(), (fit - 1) * body.size());
  for (int i = 0; i < 2; ++i) replies_to(request + body);
  EXPECT_TRUE(replies_to(request + body).starts_with("HTTP/1.1 503"));
  EXPECT_LE(room_.bodies->peak(), limits_.all_bodies_bytes());
  EXPECT_LE(notes_.kept.size(), fit);
  notes_.kept.clear();
  EXPECT_EQ(room_.bodies->held(), 0U);
  EXPECT_TRUE(replies_to(request + body).starts_with("HTTP/1.1 200"));
}

TEST_F(ConnectionTest, RepliesAreBoundedTogether) {
  const std::string request = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
  ByteShare others(room_.replies);
  ASSERT_TRUE(others.grow_to(limits_.all_replies_bytes));
  EXPECT_TRUE(replies_to(request).starts_with("HTTP/1.1 503"));
  notes_.reply_bytes = 0;
  EXPECT_TRUE(replies_to(request).starts_with("HTTP/1.1 200"));
}

}  // namespace
}  // namespace winnow::server
