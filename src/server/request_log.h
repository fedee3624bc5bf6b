// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "server/answers/cost.h"
#include "server/options.h"

namespace winnow::server {

/// Facts about a request that has ended.
struct RequestRecord {
  std::string path = {};
  std::string id = {};      ///< that its client knows; empty: it was refused before it had one
  std::string key = {};     ///< the name of the key, never the key; empty: none is asked for
  AnswerCost cost = {};     ///< as far as it came
  std::string finish = {};  ///< the reasons of its answers: stop, length, abort, error; empty: it was refused
  int status = 200;
  std::string reason = {};   ///< of a refusal or an error: its code or type
  std::string message = {};  ///< of an error that has ended it
};

/// Writes a line to stderr for each request that has ended. Any thread may call. Nobody waits for a reader of stderr:
/// when too many lines wait for one, the oldest are dropped.
class RequestLog {
 public:
  explicit RequestLog(RequestLogging format);
  ~RequestLog();

  void write(const RequestRecord& record);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  ///< null: nothing is written
};

}  // namespace winnow::server
