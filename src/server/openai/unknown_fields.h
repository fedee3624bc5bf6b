// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "server/openai/fields.h"

namespace winnow::server {

/// Logs unknown parts of requests, each sentence once, up to a limit. Thread-safe.
class UnknownFields {
 public:
  /// Logs the fields that were not read.
  void name(const Fields& fields);
  void say(const std::string& sentence);

 private:
  std::mutex mutex_;
  std::set<std::string> said_;
};

}  // namespace winnow::server
