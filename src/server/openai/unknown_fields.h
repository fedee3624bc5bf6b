// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "server/openai/fields.h"

namespace winnow::server {

/// Says in the log what of requests is not known, each sentence once and so many at most. Any thread may call.
class UnknownFields {
 public:
  /// Names the fields that nobody has read.
  void name(const Fields& fields);
  void say(const std::string& sentence);

 private:
  std::mutex mutex_;
  std::set<std::string> said_;
};

}  // namespace winnow::server
