// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "winnow/error.h"

namespace winnow::test {

/// The message of the exception of type `Kind` that a call throws; empty if it throws none.
template <typename Kind>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

inline std::string refusal(const std::function<void()>& call) { return message_of<InputError>(call); }
inline std::string usage_error(const std::function<void()>& call) { return message_of<UsageError>(call); }

}  // namespace winnow::test
