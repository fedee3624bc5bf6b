// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/message.h"

namespace winnow::server {

/// Who may use a route.
enum class Access : std::uint8_t { anybody, key_holders };

using RouteHandler = std::function<void(const HttpHead&, HttpBody body, std::shared_ptr<Responder>)>;

struct Route {
  /// False for routes that are answered without a body: all HTTP methods but POST.
  bool takes_body() const { return method == "POST"; }

  std::string method;
  std::string path;  ///< `{}` stands for any non-empty part, as in /v1/documents/{}
  Access access = Access::key_holders;
  RouteHandler handler;
};

/// The percent-decoded part of a path for the `{}` of its route; "" if the route has none, std::nullopt if the
/// encoding is invalid. REQUIRES: the path matches the route.
std::optional<std::string> parameter_of(const Route& route, std::string_view path);

/// Finds the route of a request.
class Router {
 public:
  void add(Route route) { routes_.push_back(std::move(route)); }

  /// Null if there is no such route. HEAD is routed as GET.
  const Route* find(std::string_view method, std::string_view path) const;
  /// The HTTP methods of a path, as in `GET, POST`; "" if there is no such path.
  std::string methods_of(std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace winnow::server
