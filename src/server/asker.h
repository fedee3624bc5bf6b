// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.h"

namespace winnow::server {

/// The client of a request, and the request's time.
struct Asker {
  std::string path;
  std::string key;       ///< empty if no keys are needed
  std::string key_name;  ///< for the log
  Clock::time_point arrived;
  std::string conversation = {};  ///< from the header; empty: it has none
};

}  // namespace winnow::server
