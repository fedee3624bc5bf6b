// SPDX-License-Identifier: Apache-2.0
#include "server/http/router.h"

#include <algorithm>

namespace winnow::server {

const Route* Router::find(std::string_view method, std::string_view path) const {
  if (method == "HEAD") method = "GET";
  const auto found =
      std::ranges::find_if(routes_, [&](const Route& r) { return r.method == method && r.path == path; });
  return found == routes_.end() ? nullptr : &*found;
}

std::string Router::methods_of(std::string_view path) const {
  std::string out;
  for (const auto& route : routes_) {
    if (route.path == path) out += (out.empty() ? "" : ", ") + route.method;
  }
  return out;
}

}  // namespace winnow::server
