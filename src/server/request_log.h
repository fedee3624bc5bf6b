// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "server/answers/cost.h"
#include "server/options.h"

namespace winnow::server {

/// Facts about a finished request.
struct RequestRecord {
  std::string path = {};
  std::string id = {};      ///< known to the client; empty: refused before it had one
  std::string key = {};     ///< name of the key, never the key itself; empty: none is needed
  AnswerCost cost = {};     ///< up to the request's end
  std::string finish = {};  ///< the reasons of its answers: stop, length, abort, error; empty: refused
  int status = 200;
  std::string reason = {};   ///< code or type of a refusal or an error
  std::string message = {};  ///< of the error that ended it
};

/// Writes a line to stderr for each finished request. Thread-safe. Never blocks on stderr: if too many lines wait, it
/// drops the oldest.
class RequestLog {
 public:
  explicit RequestLog(RequestLogging format);
  ~RequestLog();

  void write(const RequestRecord& record);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  ///< null: logging is off
};

}  // namespace winnow::server
