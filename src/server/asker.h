// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/clock.h"

namespace winnow::server {

/// Who asks, and since when.
struct Asker {
  std::string path;
  std::string key;       ///< empty where none is asked for
  std::string key_name;  ///< in the log
  Clock::time_point arrived;
  std::string session = {};  ///< as the header says; empty: it does not
};

}  // namespace winnow::server
