// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "winnow/session.h"

namespace winnow::cli {

/// A hash of the session's calibration file, or "" if there is none. Throws InputError.
std::string calibration_name(const SessionOptions& options);

}  // namespace winnow::cli
