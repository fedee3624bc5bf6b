// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/body.h"

namespace winnow::server {

/// Converts ASCII letters to lower case, as in names of headers and hosts.
std::string lower_case(std::string_view text);

using Header = std::pair<std::string, std::string>;

/// The head of a request.
struct HttpHead {
  std::string method;
  std::string path;  ///< of the target, without its query
  std::vector<Header> headers;
  std::optional<std::string> authority = {};  ///< host and port, if the target has them
  std::string parameter = {};                 ///< the path's part for the `{}` of its route, decoded

  /// The first header with this name (in lower case), or "".
  std::string_view header(std::string_view name) const;
};

struct HttpReply {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::vector<Header> headers = {};
};

/// Receives the answer to a request from a handler in any thread: one send(), or begin(), any number of write(), and
/// end(). Later calls are ignored, as are calls after the client has gone.
class Responder {
 public:
  Responder() = default;
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;
  virtual ~Responder() = default;

  virtual void send(HttpReply reply) = 0;
  /// Begins a stream of server-sent events.
  virtual void begin() = 0;
  virtual void write(std::string bytes) = 0;
  virtual void end() = 0;
  /// Sets an action for the HTTP thread to call when the client goes before the end, or at once if it has gone.
  virtual void on_gone(std::function<void()> action) = 0;
  /// Sets an action for the HTTP thread to call whenever a stream has been silent for long.
  virtual void on_silence(std::function<void()> action) = 0;
};

/// Answers requests. Its functions are called in the HTTP thread, and return immediately.
class HttpHandler {
 public:
  HttpHandler() = default;
  HttpHandler(const HttpHandler&) = delete;
  HttpHandler& operator=(const HttpHandler&) = delete;
  virtual ~HttpHandler() = default;

  /// Headers of every reply to this request.
  virtual std::vector<Header> headers_for(const HttpHead& head) const = 0;
  /// True, with `reply` set, if a request needs no body: it is refused, or a preflight.
  virtual bool answers_head(const HttpHead& head, HttpReply& reply) const = 0;
  /// True if the request's body is to be read. If not, it is answered without it. REQUIRES: answers_head() returned
  /// false.
  virtual bool takes_body(const HttpHead& head) const = 0;
  virtual void handle(HttpHead head, HttpBody body, std::shared_ptr<Responder> to) = 0;
  /// Called after each handle(), when its answer has been sent or its client has gone.
  virtual void finished() = 0;
  /// The reply to an invalid HTTP request, to one over a limit, and to a connection too many. `path` is empty if
  /// unknown.
  virtual HttpReply refusal(int status, const std::string& sentence, const std::string& path) const = 0;
};

}  // namespace winnow::server
