// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "winnow/session.h"

namespace winnow::cli {

/// Shows how far a prompt has been read and how long the rest will take: one line on stderr that is written over, on a
/// terminal alone.
void show_progress(Session& session, const std::string& what = "reading the prompt");

}  // namespace winnow::cli
