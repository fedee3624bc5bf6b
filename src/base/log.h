// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>

namespace winnow {

enum class Verbosity : std::uint8_t { quiet, normal, verbose };

/// The one logger: to stderr, coloured only on a terminal and without NO_COLOR in the environment.
spdlog::logger& log();

/// quiet: errors only; normal: warnings and notes; verbose: everything, what ggml and libllama say included.
void set_verbosity(Verbosity verbosity);

/// From now on each line begins with the time, as in 2026-11-23T00:00:36.087+00:00.
void log_with_time();

/// From now on each line is a JSON object: {"time": seconds since 1970, "level", "message"}.
void log_as_json();

}  // namespace winnow
