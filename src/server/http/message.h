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

/// ASCII letters become lower case, as in names of headers and hosts.
std::string lower_case(std::string_view text);

using Header = std::pair<std::string, std::string>;

/// The part of a request that comes before its body.
struct HttpHead {
  std::string method;
  std::string path;  ///< of the target, without what follows a `?`
  std::vector<Header> headers;
  std::optional<std::string> authority = {};  ///< host and port, where the target has them
  std::string parameter = {};                 ///< what stands in the path for the `{}` of its route, decoded

  /// The first one of that name (in lower case); empty when there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpReply {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::vector<Header> headers = {};
};

/// Where the answer to a request goes, by a handler in any thread: one send(), or begin(), any number of write(), and
/// end(). What comes after that, or after the client has gone, is dropped.
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
  /// Takes the call to make, in the thread for HTTP, when the client goes before the end; at once if it has gone.
  virtual void on_gone(std::function<void()> action) = 0;
  /// Takes the call to make, in the thread for HTTP, whenever a stream has said nothing for long.
  virtual void on_silence(std::function<void()> action) = 0;
};

/// Answers requests. Its functions are called in the thread for HTTP, and return at once.
class HttpHandler {
 public:
  HttpHandler() = default;
  HttpHandler(const HttpHandler&) = delete;
  HttpHandler& operator=(const HttpHandler&) = delete;
  virtual ~HttpHandler() = default;

  /// Headers that every reply to this request gets.
  virtual std::vector<Header> headers_for(const HttpHead& head) const = 0;
  /// Whether a request can be answered without its body: a refusal, a preflight.
  virtual bool answers_head(const HttpHead& head, HttpReply& reply) const = 0;
  /// Whether its body is read. Where not, the request is answered without it. REQUIRES: answers_head() said no.
  virtual bool takes_body(const HttpHead& head) const = 0;
  virtual void handle(HttpHead head, HttpBody body, std::shared_ptr<Responder> to) = 0;
  /// After each handle(): its answer has been sent, or its client has gone.
  virtual void finished() = 0;
  /// The reply to what is no HTTP request or over a limit, and to a connection too many. `path` is empty where it is
  /// not known.
  virtual HttpReply refusal(int status, const std::string& sentence, const std::string& path) const = 0;
};

}  // namespace winnow::server
