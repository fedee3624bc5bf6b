// SPDX-License-Identifier: Apache-2.0
#include "server/http/router.h"

#include <algorithm>

#include "base/percent_encoding.h"

namespace winnow::server {

namespace {

constexpr std::string_view kParameter = "{}";

/// Removes and returns the part of a path before its next `/`.
std::string_view take_part(std::string_view& path) {
  const auto part = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(path.size(), part.size() + 1));
  return part;
}

/// True if a path matches a route. Sets `parameter` to the part for its `{}`.
bool matches(std::string_view route, std::string_view path, std::string_view& parameter) {
  if (std::ranges::count(route, '/') != std::ranges::count(path, '/')) return false;
  while (!route.empty()) {
    const auto wanted = take_part(route);
    const auto part = take_part(path);
    if (wanted == kParameter && !part.empty()) {
      parameter = part;
    } else if (wanted != part) {
      return false;
    }
  }
  return path.empty();
}

bool matches(const Route& route, std::string_view path) {
  std::string_view parameter;
  return matches(route.path, path, parameter);
}

}  // namespace

std::optional<std::string> parameter_of(const Route& route, std::string_view path) {
  std::string_view out;
  matches(route.path, path, out);
  return percent_decoded(out);
}

const Route* Router::find(std::string_view method, std::string_view path) const {
  if (method == "HEAD") method = "GET";
  const auto found =
      std::ranges::find_if(routes_, [&](const Route& r) { return r.method == method && matches(r, path); });
  return found == routes_.end() ? nullptr : &*found;
}

std::string Router::methods_of(std::string_view path) const {
  std::string out;
  for (const auto& route : routes_) {
    if (matches(route, path)) out += (out.empty() ? "" : ", ") + route.method;
  }
  return out;
}

}  // namespace winnow::server
