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
  /// A request of any other method is answered without its body.
  bool takes_body() const { return method == "POST"; }

  std::string method;
  std::string path;  ///< a part that is `{}` stands for any that is not empty: /v1/documents/{}
  Access access = Access::key_holders;
  RouteHandler handler;
};

/// The part of a path that stands for the `{}` of a route's, percent-decoded; empty when the route has none. Nothing
/// when it is not encoded as it must be. REQUIRES: a path that takes the route.
std::optional<std::string> parameter_of(const Route& route, std::string_view path);

/// Which route a request takes.
class Router {
 public:
  void add(Route route) { routes_.push_back(std::move(route)); }

  /// Null when there is none. HEAD is taken as GET.
  const Route* find(std::string_view method, std::string_view path) const;
  /// The methods of a path, `GET, POST`; empty when there is no such path.
  std::string methods_of(std::string_view path) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace winnow::server
