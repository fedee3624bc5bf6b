// SPDX-License-Identifier: Apache-2.0
#include "server/http/request_rules.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/printable.h"

namespace winnow::server {

namespace {

constexpr unsigned kHttp10 = 10;

auto headers_named(const HttpHead& head, std::string_view name) {
  return std::ranges::count(head.headers, name, &Header::first);
}

/// True for a name or an address, with or without a port: no user, path or list.
bool is_host(std::string_view value) {
  return std::ranges::all_of(value, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-._~%!$&'()*+;=:[]").find(c) != std::string_view::npos;
  });
}

void check_host(const HttpHead& head, unsigned version) {
  const auto hosts = headers_named(head, "host");
  if (hosts > 1) throw BadRequest(400, fmt::format("the request has {} Host headers: send one", hosts));
  if (hosts == 0 && version != kHttp10) throw BadRequest(400, "the request has no Host header");
  const auto host = head.header("host");
  if (!is_host(host)) throw BadRequest(400, fmt::format("the Host header is not a host name: {}", brief(host)));
  if (head.authority && lower_case(*head.authority) != lower_case(host))
    throw BadRequest(
        400, fmt::format("the request is for {}, but its Host header says {}", brief(*head.authority), brief(host)));
}

/// Beast has checked that it is a number, or a list of equal numbers.
void check_body_length(const HttpHead& head) {
  const auto lengths = headers_named(head, "content-length");
  if (lengths > 1) throw BadRequest(400, fmt::format("the request has {} Content-Length headers: send one", lengths));
  const auto length = head.header("content-length");
  if (lengths == 1 && (length.empty() || !std::ranges::all_of(length, [](char c) { return '0' <= c && c <= '9'; })))
    throw BadRequest(400, fmt::format("Content-Length must be a number, not {}", brief(length)));
}

/// All Transfer-Encoding headers as one list, in lower case.
std::string transfer_codings(const HttpHead& head) {
  std::string out;
  for (const auto& [name, value] : head.headers) {
    if (name == "transfer-encoding") out += (out.empty() ? "" : ", ") + lower_case(value);
  }
  return out;
}

void check_transfer_coding(const HttpHead& head, unsigned version) {
  if (headers_named(head, "transfer-encoding") == 0) return;
  const std::string codings = transfer_codings(head);
  if (codings == "chunked" && version != kHttp10 && headers_named(head, "content-length") == 0) return;
  if (version == kHttp10) throw BadRequest(400, "HTTP/1.0 does not have Transfer-Encoding");
  if (headers_named(head, "content-length") > 0)
    throw BadRequest(400, "Transfer-Encoding and Content-Length exclude each other: send one of them");
  constexpr std::string_view kBefore = ", \t";
  const auto last = codings.find_last_of(kBefore) + 1;  // 0 for a single coding
  if (codings.substr(last) != "chunked" || codings.find("chunked") != last)
    throw BadRequest(400,
                     fmt::format("Transfer-Encoding must end with chunked, given once, not be {}", brief(codings)));
  throw BadRequest(501, fmt::format("Transfer-Encoding is {}: only chunked is supported", brief(codings)));
}

}  // namespace

HttpHead head_of(std::string_view method, std::string_view target, std::vector<Header> headers) {
  HttpHead out;
  out.method = method;
  for (auto& [name, value] : headers) name = lower_case(name);
  out.headers = std::move(headers);
  if (const auto scheme = target.find("://"); !target.starts_with('/') && scheme != std::string_view::npos) {
    const std::string name = lower_case(target.substr(0, scheme));
    if (name != "http" && name != "https")
      throw BadRequest(400, fmt::format("the request is for {}, but this is an HTTP server", brief(target)));
    target.remove_prefix(scheme + 3);
    const auto end = std::min(target.find_first_of("/?"), target.size());
    out.authority = target.substr(0, end);
    target.remove_prefix(end);
    if (!target.starts_with('/')) target = "/";  // with or without a query, it is the root
  }
  out.path = target.substr(0, target.find('?'));
  return out;
}

bool has_folded_line(std::string_view header) {
  return header.find("\r\n ") != std::string_view::npos || header.find("\r\n\t") != std::string_view::npos;
}

void check_request(const HttpHead& head, unsigned version) {
  check_host(head, version);
  check_body_length(head);
  check_transfer_coding(head, version);
}

}  // namespace winnow::server
