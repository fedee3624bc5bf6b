// SPDX-License-Identifier: Apache-2.0
#include "server/http/request_reader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <utility>

#include "server/http/request_rules.h"

namespace winnow::server {

namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t kReadBytes = 4096;

bool is_about_http(const error_code& error) {
  return error.category() == make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

[[noreturn]] void refuse_bytes(const error_code& error) {
  if (!is_about_http(error)) throw ClientGone();
  throw BadRequest(400, fmt::format("this is not an HTTP request: {}", error.message()));
}

}  // namespace

RequestReader::RequestReader(Stream& stream, const HttpRoom& room)
    : stream_(stream), room_(room), limits_(room.limits), buffer_(limits_.header_bytes + kReadBytes) {}

net::awaitable<void> RequestReader::read_more() {
  error_code error;
  const auto room = std::min(kReadBytes, buffer_.max_size() - buffer_.size());
  buffer_.commit(co_await stream_.async_read_some(buffer_.prepare(room), into(error)));
  if (error) throw ClientGone();
}

net::awaitable<void> RequestReader::wait() {
  if (buffer_.size() == 0) co_await read_more();
}

net::awaitable<HttpHead> RequestReader::read_head() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
  parser_->body_limit(limits_.body_bytes);
  header_.clear();
  line_bytes_ = 0;
  while (!parse_header()) co_await read_more();
  std::vector<Header> headers;
  const auto& request = parser_->get();
  for (const auto& field : request) headers.emplace_back(field.name_string(), field.value());
  HttpHead out = head_of({request.method_string().data(), request.method_string().size()},
                         {request.target().data(), request.target().size()}, std::move(headers));
  check_request(out, request.version());
  co_return out;
}

bool RequestReader::parse_header() {
  error_code error;
  if (buffer_.size() > 0) {
    const auto bytes = static_cast<const char*>(buffer_.data().data());
    const std::size_t used = parser_->put(buffer_.data(), error);
    header_.append(bytes, used);
    buffer_.consume(used);
  }
  const auto most = limits_.header_bytes;
  if (header_.size() > most || (!parser_->is_header_done() && header_.size() + buffer_.size() >= most))
    throw BadRequest(431, fmt::format("the header is larger than {} bytes", most));
  if (const auto lines = std::ranges::count(header_, '\n');
      lines > static_cast<std::ptrdiff_t>(limits_.header_fields) + 2)
    throw BadRequest(431, fmt::format("the header has more than {} fields", limits_.header_fields));
  if (error == http::error::body_limit)
    throw BadRequest(413, fmt::format("the body is larger than {} bytes", limits_.body_bytes));
  if (error && error != http::error::need_more) refuse_bytes(error);
  if (has_folded_line(header_))
    throw BadRequest(400, "this is not an HTTP request: a header continues on the next line");
  return parser_->is_header_done();
}

std::string RequestReader::path() const {
  if (!parser_) return {};
  const std::string_view target{parser_->get().target().data(), parser_->get().target().size()};
  return target.starts_with('/') ? std::string(target.substr(0, target.find('?'))) : std::string();
}

Framing RequestReader::framing() const {
  const auto& request = parser_->get();
  return {.version = request.version(),
          .after = parser_->keep_alive() ? After::keeps : After::closes,
          .has_body = request.method() != http::verb::head};
}

net::awaitable<HttpBody> RequestReader::read_body() {
  ByteShare share(room_.bodies);
  auto on_chunk = [this](std::uint64_t /*size*/, const auto& more, error_code& error) {
    count_line(more.size(), error);
  };
  parser_->on_chunk_header(on_chunk);
  parser_->eager(true);
  while (!parser_->is_done()) co_await read_some_of_body(share);
  HttpBody out(std::move(parser_->get().body()), std::move(share));
  co_return out;
}

void RequestReader::count_line(std::size_t bytes, error_code& error) {
  line_bytes_ += bytes;
  if (line_bytes_ > limits_.header_bytes) error = http::error::header_limit;
}

net::awaitable<void> RequestReader::read_some_of_body(ByteShare& share) {
  error_code error;
  co_await http::async_read_some(stream_, buffer_, *parser_, into(error));
  if (error == http::error::body_limit)
    throw BadRequest(413, fmt::format("the body is larger than {} bytes", limits_.body_bytes));
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    throw BadRequest(
        431, fmt::format("the chunk headers and trailers of the body are larger than {} bytes", limits_.header_bytes));
  if (error && error != http::error::need_more) refuse_bytes(error);
  if (!share.grow_to(parser_->get().body().size()))  // counts the bytes received, not those that the client announces
    throw BadRequest(
        503,
        fmt::format(
            "the bodies of all requests may take {} bytes together, which leaves no room for this one: try again later",
            room_.bodies->most()));
}

net::awaitable<void> RequestReader::read_ahead() {
  while (buffer_.size() < limits_.header_bytes) co_await read_more();
}

net::awaitable<void> RequestReader::drop_all() {
  error_code error;
  while (!error) {
    buffer_.clear();
    co_await stream_.socket().async_read_some(buffer_.prepare(kReadBytes), into(error));
  }
}

}  // namespace winnow::server
