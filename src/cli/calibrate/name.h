// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "winnow/session.h"

namespace winnow::cli {

/// Identity of a session's calibration: a hash of its file. Empty where there is none. Throws InputError.
std::string calibration_name(const SessionOptions& options);

}  // namespace winnow::cli
