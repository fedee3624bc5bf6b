// SPDX-License-Identifier: Apache-2.0
#include "server/hosts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

namespace winnow::server {

namespace {

/// True for `127.0.0.1` or `[::1]`. Browsers do not send zones (`fe80::1%eth0`).
bool is_address(const std::string& host) {
  in6_addr place{};
  if (host.starts_with('[') && host.ends_with(']'))
    return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &place) == 1;
  return inet_pton(AF_INET, host.c_str(), &place) == 1;
}

}  // namespace

std::string host_of(std::string_view header) {
  const auto bracket = header.starts_with('[') ? header.find(']') : std::string_view::npos;
  const auto colon = header.find(':', bracket == std::string_view::npos ? 0 : bracket);
  std::string out = lower_case(header.substr(0, colon));
  if (out.ends_with('.')) out.pop_back();
  return out;
}

Hosts::Hosts(std::vector<std::string> names) : names_(std::move(names)) {
  names_.emplace_back("localhost");
  for (auto& name : names_) name = host_of(name);
  std::erase(names_, "");  // from `::`, which is an address
}

bool Hosts::allow(const HttpHead& head) const {
  if (std::ranges::count(head.headers, "host", &Header::first) == 0) return true;
  const std::string host = host_of(head.header("host"));
  return is_address(host) ||
         std::ranges::any_of(names_, [&host](const auto& name) { return name == "*" || name == host; });
}

}  // namespace winnow::server
