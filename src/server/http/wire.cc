// SPDX-License-Identifier: Apache-2.0
#include "server/http/wire.h"

#include <spdlog/fmt/fmt.h>

#include <boost/beast/http/status.hpp>
#include <string_view>

namespace winnow::server {

namespace {

namespace http = boost::beast::http;

std::string head_text(int status, const std::vector<Header>& headers, const Framing& framing) {
  const auto reason = http::obsolete_reason(static_cast<http::status>(status));
  std::string out = fmt::format("HTTP/1.{} {} {}\r\n", framing.version == 10 ? 0 : 1, status,
                                std::string_view(reason.data(), reason.size()));
  const auto add = [&out](const auto& list) {
    for (const auto& [name, value] : list) out += fmt::format("{}: {}\r\n", name, value);
  };
  add(headers);
  add(framing.headers);
  return out + fmt::format("Connection: {}\r\n\r\n", framing.after == After::keeps ? "keep-alive" : "close");
}

}  // namespace

std::string reply_bytes(const HttpReply& reply, const Framing& framing) {
  std::vector<Header> headers = reply.headers;
  if (!reply.type.empty() && reply.status != 204) {
    headers.emplace_back("Content-Type", reply.type);
    headers.emplace_back("Content-Length", std::to_string(reply.body.size()));
  }
  return head_text(reply.status, headers, framing) + (framing.has_body ? reply.body : "");
}

std::string stream_head(const Framing& framing) {
  std::vector<Header> headers{{"Content-Type", "text/event-stream"}, {"Cache-Control", "no-cache"}};
  if (framing.version != 10) headers.emplace_back("Transfer-Encoding", "chunked");
  return head_text(200, headers, framing);
}

std::string stream_part(const std::string& bytes, const Framing& framing) {
  return framing.version == 10 ? bytes : fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

std::string stream_end(const Framing& framing) { return framing.version == 10 ? "" : "0\r\n\r\n"; }

}  // namespace winnow::server
