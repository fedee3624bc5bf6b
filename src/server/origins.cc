// SPDX-License-Identifier: Apache-2.0
#include "server/origins.h"

#include <algorithm>
#include <array>

namespace winnow::server {

namespace {

/// True for `http://localhost:3000` and the like.
bool is_local(std::string_view origin) {
  constexpr std::array<std::string_view, 3> kHosts{"localhost", "127.0.0.1", "[::1]"};
  const auto begin = origin.find("://");
  if (begin == std::string_view::npos) return false;
  const std::string_view host = origin.substr(begin + 3);
  return std::ranges::any_of(kHosts, [&](std::string_view local) {
    return host.starts_with(local) && (host.size() == local.size() || host[local.size()] == ':');
  });
}

}  // namespace

bool Origins::allow(const HttpHead& head) const {
  const std::string_view origin = head.header("origin");
  if (origin.empty() || is_local(origin)) return true;
  const std::string host(head.header("host"));
  if (origin == "http://" + host || origin == "https://" + host) return true;
  return std::ranges::any_of(origins_, [&](const auto& known) { return known == "*" || known == origin; });
}

std::vector<Header> Origins::headers_for(const HttpHead& head) const {
  const std::string_view origin = head.header("origin");
  if (origin.empty() || !allow(head)) return {};
  return {{"Access-Control-Allow-Origin", std::string(origin)},
          {"Vary", "Origin"},
          {"Access-Control-Expose-Headers", "Retry-After"}};
}

HttpReply Origins::preflight(const HttpHead& head) {
  HttpReply out{204,
                "",
                "",
                {{"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"}, {"Access-Control-Max-Age", "3600"}}};
  const std::string_view wanted = head.header("access-control-request-headers");
  if (!wanted.empty()) out.headers.emplace_back("Access-Control-Allow-Headers", wanted);
  return out;
}

}  // namespace winnow::server
